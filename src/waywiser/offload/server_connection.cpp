#include "waywiser/offload/server_connection.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <string_view>
#include <thread>

#include "waywiser/base/environment.hpp"
#include "waywiser/base/error.hpp"
#include "waywiser/comm/bootstrap/tcp.hpp"
#include "waywiser/comm/message/wire.hpp"

namespace waywiser {
namespace {

constexpr Seconds greeting_patience = 5;
constexpr Seconds first_rest = 0.01, longest_rest = 0.32;
constexpr std::string_view greeting = "WAYWISER-GPU-1\r\n", any_greeting = "WAYWISER-GPU-",
                           later = "WAYWISER-GPU-LATER";
constexpr std::string_view white_space = " \t\r\n\v\f";
constexpr std::size_t nonce_bytes = 32, shortest_key = 32;
constexpr Bytes largest_key_file = 4096;
constexpr std::uint32_t longest_message = 1 << 16;

// The server has too many strangers, or has closed a connection for that.
class TryLater : public Error {
 public:
  using Error::Error;
};

// By errno.
[[noreturn]] void throw_broken(const std::string& what) {
  const bool is_reset = errno == ECONNRESET || errno == EPIPE;
  const std::string why = what + ": " + last_system_error();
  if (is_reset) throw TryLater(ErrorKind::io, why);
  throw Error(ErrorKind::io, why);
}

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::span<const std::byte> bytes_of_text(std::string_view text) { return std::as_bytes(std::span(text)); }

Digest proof_of(std::span<const std::byte> key, std::string_view word, std::span<const std::byte> nonces) {
  WireWriter text;
  text.raw(bytes_of_text("waywiser offload "));
  text.raw(bytes_of_text(word));
  text.number(std::uint8_t{0});
  text.raw(nonces);
  return hmac_sha256(key, text.bytes());
}

Digest mark_of(const Digest& key, std::uint64_t number, std::span<const std::byte> body) {
  WireWriter text;
  text.number(number);
  text.raw(body);
  return hmac_sha256(key, text.bytes());
}

// Of a greeting, without the end of its line.
std::string name_of_greeting(std::string_view greeted) {
  return quoted(greeted.substr(0, greeted.find('\r')), greeted.size());
}

std::filesystem::path usual_key_file() {
  if (const auto folder = environment("XDG_CONFIG_HOME"); folder && !folder->empty())
    return std::filesystem::path(*folder) / "waywiser/serve.key";
  return std::filesystem::path(environment("HOME").value_or("/")) / ".config/waywiser/serve.key";
}

void check_private(const std::filesystem::path& file) {
  struct stat facts{};
  if (::stat(file.c_str(), &facts) == 0 && S_ISREG(facts.st_mode) && (facts.st_mode & 077) != 0)
    throw Error(ErrorKind::invalid_input,
                file.string() + ": other users may read this key: chmod 600 " + file.string() + ", and make a new key");
}

Descriptor connected(const std::string& address) {
  const std::string what = "no server of GPUs at " + address;
  const Endpoint endpoint = parse_endpoint(address);
  Descriptor socket = begin_connecting(endpoint);
  if (!wait_for_socket(socket.number(), POLLOUT, Deadline::in(greeting_patience)))
    throw Error(ErrorKind::io, what + ": it does not answer");
  int problem = 0;
  socklen_t length = sizeof problem;
  ::getsockopt(socket.number(), SOL_SOCKET, SO_ERROR, &problem, &length);
  if (problem != 0) {
    errno = problem;
    throw_broken(what);
  }
  return socket;
}

}  // namespace

std::vector<std::byte> read_serve_key(const std::filesystem::path& file) {
  const std::filesystem::path from = file.empty() ? usual_key_file() : file;
  std::string text = read_text(from, largest_key_file);
  check_private(from);
  std::string_view digits = text;
  digits.remove_prefix(std::min(digits.find_first_not_of(white_space), digits.size()));
  digits = digits.substr(0, digits.find_last_not_of(white_space) + 1);
  std::vector<std::byte> key(digits.size() / 2);
  bool good = digits.size() % 2 == 0 && key.size() >= shortest_key;
  for (std::size_t i = 0; i < key.size() && good; ++i) {
    unsigned value = 0;
    const char* const pair = &digits[2 * i];
    const auto [end, problem] = std::from_chars(pair, pair + 2, value, 16);
    good = problem == std::errc() && end == pair + 2;
    key[i] = static_cast<std::byte>(value);
  }
  wipe(std::as_writable_bytes(std::span(text)));
  if (!good)
    throw Error(ErrorKind::invalid_input, from.string() + ": a key has at least " + std::to_string(2 * shortest_key) +
                                              " hexadecimal digits: `waywiser serve --new-key` makes one");
  return key;
}

ServerConnection::ServerConnection(const std::string& address, std::span<const std::byte> key)
    : address_(address), socket_(connected(address)) {
  try {
    greet(key);
  } catch (const TryLater&) {
    throw;
  } catch (const Error& error) {
    throw Error(error.kind(), address_ + ": " + error.what());
  }
}

std::pair<std::shared_ptr<ServerConnection>, Json> ServerConnection::ask(const std::string& address,
                                                                         std::span<const std::byte> key,
                                                                         const Json& question, Seconds patience,
                                                                         Deadline deadline) {
  for (Seconds rest = first_rest;; rest = std::min(2 * rest, longest_rest)) {
    throw_if_interrupted();
    try {
      auto connection = std::make_shared<ServerConnection>(address, key);
      connection->send(question);
      Json answer = connection->receive(patience);
      return {std::move(connection), std::move(answer)};
    } catch (const TryLater& error) {
      if (deadline.left() <= rest) throw Error(error.kind(), address + ": " + error.what());
    }
    std::this_thread::sleep_for(std::chrono::duration<double>(rest));
  }
}

void ServerConnection::greet(std::span<const std::byte> key) {
  const Deadline deadline = Deadline::in(greeting_patience);
  std::vector<std::byte> nonces(nonce_bytes);
  fill_with_random(nonces);
  WireWriter hello;
  hello.raw(bytes_of_text(greeting));
  hello.raw(nonces);
  write(hello.bytes());
  const std::vector<std::byte> answer = read(2 * nonce_bytes, deadline);
  const std::string_view text = text_of(answer).substr(0, greeting.size());
  if (text.starts_with(any_greeting))
    throw Error(ErrorKind::invalid_input, "this client greets as " + name_of_greeting(greeting) + ", the server as " +
                                              name_of_greeting(text) +
                                              ": install the same version of waywiser at both");
  nonces.insert(nonces.end(), answer.begin(), answer.begin() + nonce_bytes);
  if (!equal(proof_of(key, "server", nonces), std::span(answer).subspan(nonce_bytes)))
    throw Error(ErrorKind::invalid_input, "the server does not know this key");
  write(proof_of(key, "client", nonces));
  secret_ = Secret(hexadecimal(proof_of(key, "group", nonces)));
  mine_ = proof_of(key, "to server", nonces);
  theirs_ = proof_of(key, "to client", nonces);
}

void ServerConnection::send(const Json& message) {
  const std::string body = message.dump();
  WireWriter head;
  head.number(static_cast<std::uint32_t>(body.size()));
  write(head.bytes());
  write(mark_of(mine_, sent_++, bytes_of_text(body)));
  write(bytes_of_text(body));
}

Json ServerConnection::receive(Seconds patience) {
  const Deadline deadline = Deadline::in(patience);
  const std::vector<std::byte> head = read(sizeof(std::uint32_t) + sizeof(Digest), deadline);
  const auto length = WireReader(head, address_).number<std::uint32_t>();
  if (length > longest_message) throw Error(ErrorKind::invalid_input, address_ + ": a message that is too long");
  const std::vector<std::byte> body = read(length, deadline);
  if (!equal(mark_of(theirs_, received_++, body), std::span(head).subspan(sizeof(std::uint32_t))))
    throw Error(ErrorKind::invalid_input, address_ + ": a message was changed on its way");
  Json message = parse_json(text_of(body), address_);
  if (message.is_object() && message.contains("problem"))
    refuse_input(address_, require_string(message, "problem", address_));
  return message;
}

void ServerConnection::write(std::span<const std::byte> bytes) {
  const Deadline deadline = Deadline::in(greeting_patience);
  while (!bytes.empty()) {
    const auto sent = ::send(socket_.number(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0)
      bytes = bytes.subspan(static_cast<std::size_t>(sent));
    else if (errno != EAGAIN && errno != EINTR)
      throw_broken("the connection broke");
    else if (!wait_for_socket(socket_.number(), POLLOUT, deadline))
      throw Error(ErrorKind::timeout, "the server takes nothing");
  }
}

std::vector<std::byte> ServerConnection::read(std::size_t count, Deadline deadline) {
  std::vector<std::byte> bytes(count);
  for (std::size_t at = 0; at < count;) {
    const auto got = ::recv(socket_.number(), &bytes[at], count - at, MSG_DONTWAIT);
    if (got > 0)
      at += static_cast<std::size_t>(got);
    else if (got == 0)
      throw Error(ErrorKind::io, "the server has closed the connection");
    else if (errno != EAGAIN && errno != EINTR)
      throw_broken("the connection broke");
    else if (!wait_for_socket(socket_.number(), POLLIN, deadline))
      throw Error(ErrorKind::timeout, "the server says nothing");
  }
  if (text_of(bytes).starts_with(later)) throw TryLater(ErrorKind::unavailable, "the server has too many connections");
  return bytes;
}

}  // namespace waywiser
