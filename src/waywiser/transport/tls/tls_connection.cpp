#include "waywiser/transport/tls/tls_connection.hpp"

#include <pthread.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>
#include <utility>

#include "waywiser/base/error.hpp"

namespace waywiser {
namespace {

// Numbers of openssl/ssl.h and bio.h, the same in 1.1.1 and 3.
constexpr int ctrl_mode = 33, ctrl_set_min_version = 123, ctrl_set_max_version = 124, ctrl_get_ktls_send = 73;
constexpr int tls_1_3 = 0x0304;
constexpr long partial_write_moving_buffer = 0x1 | 0x2;
constexpr std::uint64_t option_ktls = std::uint64_t{1} << 3;
constexpr int want_read = 2, want_write = 3, by_system_call = 5, zero_return = 6;
constexpr unsigned char aes_128_gcm_sha256[] = {0x13, 0x01};
constexpr const char* cipher_name = "TLS_AES_128_GCM_SHA256";
constexpr std::string_view identity = "waywiser job";
constexpr std::size_t most_at_once = 1 << 30;
constexpr std::uint64_t longest_record = 16 << 10;

// OpenSSL writes without MSG_NOSIGNAL: a peer that has gone must not end the process.
class NoPipeSignal {
 public:
  NoPipeSignal() {
    if (!deadly()) return;
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    active_ = ::pthread_sigmask(SIG_BLOCK, &pipe_, &before_) == 0;
  }
  NoPipeSignal(const NoPipeSignal&) = delete;
  NoPipeSignal& operator=(const NoPipeSignal&) = delete;
  ~NoPipeSignal() {
    if (!active_) return;
    const int problem = errno;
    const timespec at_once{};
    if (sigismember(&before_, SIGPIPE) == 0) ::sigtimedwait(&pipe_, nullptr, &at_once);
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    errno = problem;
  }

 private:
  static bool deadly() {
    struct sigaction now{};
    return ::sigaction(SIGPIPE, nullptr, &now) == 0 && now.sa_handler == SIG_DFL;
  }
  bool active_ = false;
  sigset_t pipe_{}, before_{};
};

const TlsContext* context_of(const SslFunctions& functions, ssl_st* connection) {
  return static_cast<const TlsContext*>(functions.ctx_get_ex_data(functions.get_ssl_ctx(connection), 0));
}

int use_key(ssl_st* connection, const void*, const unsigned char** id, std::size_t* id_length,
            ssl_session_st** session) {
  *id = reinterpret_cast<const unsigned char*>(identity.data());
  *id_length = identity.size();
  *session = context_of(ssl_library().functions(), connection)->new_session(connection);
  return *session != nullptr ? 1 : 0;
}

int find_key(ssl_st* connection, const unsigned char* id, std::size_t id_length, ssl_session_st** session) {
  *session = nullptr;
  if (std::string_view(reinterpret_cast<const char*>(id), id_length) != identity) return 1;
  *session = context_of(ssl_library().functions(), connection)->new_session(connection);
  return *session != nullptr ? 1 : 0;
}

std::string words(const SslFunctions& functions) {
  std::array<char, 256> text{};
  const unsigned long code = functions.err_get_error();
  if (code == 0) return {};
  functions.err_error_string_n(code, text.data(), text.size());
  const char* reason = std::strrchr(text.data(), ':');
  return reason == nullptr ? text.data() : reason + 1;
}

}  // namespace

TlsContext::TlsContext(const TlsKey& key, bool by_kernel)
    : functions_(ssl_library().functions()), context_(functions_.ctx_new(functions_.tls_method())), key_(key) {
  const bool good = context_ != nullptr && functions_.ctx_ctrl(context_, ctrl_set_min_version, tls_1_3, nullptr) == 1 &&
                    functions_.ctx_ctrl(context_, ctrl_set_max_version, tls_1_3, nullptr) == 1 &&
                    functions_.ctx_set_ciphersuites(context_, cipher_name) == 1 &&
                    functions_.ctx_set_num_tickets(context_, 0) == 1 &&
                    functions_.ctx_set_ex_data(context_, 0, this) == 1;
  if (!good) {
    const std::string why = words(functions_);
    if (context_ != nullptr) functions_.ctx_free(context_);
    throw Error(ErrorKind::unavailable, "this libssl has no TLS 1.3: " + why);
  }
  functions_.ctx_ctrl(context_, ctrl_mode, partial_write_moving_buffer, nullptr);
  if (by_kernel) functions_.ctx_set_options(context_, option_ktls);
  functions_.ctx_set_psk_use_session_callback(context_, use_key);
  functions_.ctx_set_psk_find_session_callback(context_, find_key);
}

TlsContext::~TlsContext() {
  functions_.ctx_free(context_);
  ::explicit_bzero(key_.data(), key_.size());
}

ssl_session_st* TlsContext::new_session(ssl_st* connection) const noexcept {
  const ssl_cipher_st* cipher = functions_.cipher_find(connection, aes_128_gcm_sha256);
  ssl_session_st* session = functions_.session_new();
  if (session == nullptr) return nullptr;
  const auto* key = reinterpret_cast<const unsigned char*>(key_.data());
  if (cipher != nullptr && functions_.session_set1_master_key(session, key, key_.size()) == 1 &&
      functions_.session_set_cipher(session, cipher) == 1 &&
      functions_.session_set_protocol_version(session, tls_1_3) == 1)
    return session;
  functions_.session_free(session);
  return nullptr;
}

TlsConnection::TlsConnection(const TlsContext& context, Descriptor socket, TlsSide side)
    : functions_(context.functions()), socket_(std::move(socket)), connection_(functions_.create(context.get())) {
  if (connection_ == nullptr || functions_.set_fd(connection_, socket_.number()) != 1) {
    if (connection_ != nullptr) functions_.free(connection_);
    throw Error(ErrorKind::io, "no TLS connection: " + words(functions_));
  }
  (side == TlsSide::client ? functions_.set_connect_state : functions_.set_accept_state)(connection_);
}

TlsConnection::~TlsConnection() {
  const NoPipeSignal quiet;
  if (ready_) functions_.shutdown(connection_);
  functions_.free(connection_);
  functions_.err_clear_error();
}

std::size_t TlsConnection::result(int returned, const char* what) {
  if (returned > 0) return static_cast<std::size_t>(returned);
  const int system = errno;
  const int error = functions_.get_error(connection_, returned);
  if (error == want_read || error == want_write) return 0;
  ready_ = false;  // nothing can be said any more, not even an end in order
  if (error == zero_return || (error == by_system_call && system == 0))
    throw Error(ErrorKind::io, std::string(what) + ": the other end has gone");
  const std::string why = error == by_system_call ? std::string(std::strerror(system)) : words(functions_);
  if (why.empty() || why == "unexpected eof while reading")
    throw Error(ErrorKind::io, std::string(what) + ": the other end has gone");
  throw Error(error == by_system_call ? ErrorKind::io : ErrorKind::invalid_input, std::string(what) + ": " + why);
}

bool TlsConnection::handshake() {
  if (ready_) return true;
  const NoPipeSignal quiet;
  functions_.err_clear_error();
  errno = 0;
  ready_ = result(functions_.do_handshake(connection_), "TLS handshake") != 0;
  return ready_;
}

std::size_t TlsConnection::write(std::span<const std::byte> bytes) {
  if (bytes.empty()) return 0;
  const NoPipeSignal quiet;
  functions_.err_clear_error();
  errno = 0;
  const auto most = static_cast<int>(std::min(bytes.size(), most_at_once));
  const std::size_t taken = result(functions_.write(connection_, bytes.data(), most), "TLS");
  if (taken != 0) written_ += (taken + longest_record - 1) / longest_record * longest_record;
  return taken;
}

std::size_t TlsConnection::read(std::span<std::byte> into) {
  if (into.empty()) return 0;
  const NoPipeSignal quiet;  // an answer of TLS itself may be due
  functions_.err_clear_error();
  errno = 0;
  const auto most = static_cast<int>(std::min(into.size(), most_at_once));
  return result(functions_.read(connection_, into.data(), most), "TLS");
}

bool TlsConnection::encrypted_by_kernel() const {
  return functions_.bio_ctrl(functions_.get_wbio(connection_), ctrl_get_ktls_send, 0, nullptr) == 1;
}

}  // namespace waywiser
