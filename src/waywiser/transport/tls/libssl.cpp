#include "waywiser/transport/tls/libssl.hpp"

#include <unistd.h>

#include <string>
#include <type_traits>
#include <vector>

#include "waywiser/base/dynamic_library.hpp"
#include "waywiser/base/environment.hpp"
#include "waywiser/base/error.hpp"

namespace waywiser {
namespace {

void find_connection_functions(const auto& find, SslFunctions& functions) {
  find(functions.create, "SSL_new");
  find(functions.free, "SSL_free");
  find(functions.set_fd, "SSL_set_fd");
  find(functions.set_connect_state, "SSL_set_connect_state");
  find(functions.set_accept_state, "SSL_set_accept_state");
  find(functions.do_handshake, "SSL_do_handshake");
  find(functions.read, "SSL_read");
  find(functions.write, "SSL_write");
  find(functions.shutdown, "SSL_shutdown");
  find(functions.get_error, "SSL_get_error");
  find(functions.get_wbio, "SSL_get_wbio");
  find(functions.bio_ctrl, "BIO_ctrl");
  find(functions.err_get_error, "ERR_get_error");
  find(functions.err_error_string_n, "ERR_error_string_n");
  find(functions.err_clear_error, "ERR_clear_error");
}

void find_session_functions(const auto& find, SslFunctions& functions) {
  find(functions.session_new, "SSL_SESSION_new");
  find(functions.session_free, "SSL_SESSION_free");
  find(functions.session_set1_master_key, "SSL_SESSION_set1_master_key");
  find(functions.session_set_cipher, "SSL_SESSION_set_cipher");
  find(functions.session_set_protocol_version, "SSL_SESSION_set_protocol_version");
  find(functions.cipher_find, "SSL_CIPHER_find");
}

void find_context_functions(const auto& find, SslFunctions& functions) {
  find(functions.tls_method, "TLS_method");
  find(functions.ctx_new, "SSL_CTX_new");
  find(functions.ctx_free, "SSL_CTX_free");
  find(functions.ctx_ctrl, "SSL_CTX_ctrl");
  find(functions.ctx_set_options, "SSL_CTX_set_options");
  find(functions.ctx_set_ciphersuites, "SSL_CTX_set_ciphersuites");
  find(functions.ctx_set_num_tickets, "SSL_CTX_set_num_tickets");
  find(functions.ctx_set_psk_use_session_callback, "SSL_CTX_set_psk_use_session_callback");
  find(functions.ctx_set_psk_find_session_callback, "SSL_CTX_set_psk_find_session_callback");
  find(functions.ctx_set_ex_data, "SSL_CTX_set_ex_data");
  find(functions.ctx_get_ex_data, "SSL_CTX_get_ex_data");
  find(functions.get_ssl_ctx, "SSL_get_SSL_CTX");
}

// Beside the libcrypto that is named, with which it goes; else as the loader finds it.
std::vector<std::string> files() {
  if (const auto named = library_override("ssl")) return {*named};
  std::vector<std::string> found;
  const std::string crypto = library_override("crypto").value_or("");
  const std::string folder = crypto.substr(0, crypto.rfind('/') + 1);  // empty where there is none
  for (const char* name : {"libssl.so.3", "libssl.so.1.1"})
    if (!folder.empty() && ::access((folder + name).c_str(), R_OK) == 0) found.push_back(folder + name);
  found.insert(found.end(), {"libssl.so.3", "libssl.so.1.1"});
  return found;
}

}  // namespace

SslLibrary::SslLibrary() {
  const DynamicLibrary library(files());
  if (!library.loaded()) {
    why_not_ = library.why_not() + " (install OpenSSL's libssl, libssl3 on Debian, or name it in WAYWISER_LIBSSL)";
    return;
  }
  path_ = library.name();
  const auto find = [&]<typename Pointer>(Pointer& slot, const char* symbol) {
    slot = library.find<std::remove_pointer_t<Pointer>>(symbol);
    if (slot == nullptr && why_not_.empty()) why_not_ = library.name() + " has no " + symbol + ": 1.1.1 is needed";
  };
  find_context_functions(find, functions_);
  find_session_functions(find, functions_);
  find_connection_functions(find, functions_);
}

const SslFunctions& SslLibrary::functions() const {
  if (!usable()) throw Error(ErrorKind::unavailable, "TLS: " + why_not_);
  return functions_;
}

const SslLibrary& ssl_library() {
  static const SslLibrary library;
  return library;
}

}  // namespace waywiser
