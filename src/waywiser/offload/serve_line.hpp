#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "waywiser/base/error.hpp"
#include "waywiser/comm/bootstrap/handshake.hpp"
#include "waywiser/comm/bootstrap/tcp.hpp"

namespace waywiser {

// The server has too many strangers, or has closed a connection for that.
class TryLater : public Error {
 public:
  using Error::Error;
};
// TryLater, if errno says that the other end has reset the connection.
[[noreturn]] void throw_broken(const std::string& why);

// A connection between a client and `waywiser serve`. They prove to each other that they know the key as ranks prove
// the secret of their job (comm/bootstrap/handshake); all texts after that are encrypted.
class ServeLine {
 public:
  explicit ServeLine(Descriptor socket);

  int number() const noexcept { return line_.number(); }
  // Whether the other end has not closed it.
  bool is_open() const noexcept;
  // The client's side. Throws invalid_input if the server does not know the key, TryLater, io, timeout.
  void greet_server(std::span<const std::byte> key, Deadline deadline);
  // The server's side: hears what has come, and never waits. False: more has to come. `key` is asked when the client
  // has said hello. Throws invalid_input for a stranger, io.
  bool hear_client(const std::function<std::vector<std::byte>()>& key);
  // Texts, once the key is proved. Throw io, timeout, and invalid_input for one that was changed on its way.
  void send(std::string_view text, Deadline deadline);
  std::string receive(Deadline deadline);
  // Hexadecimal digits that only both ends know, for the group that they form.
  const Secret& secret() const noexcept { return secret_; }

 private:
  void prove(std::span<const std::byte> key, Deadline deadline);
  Frame expect(FrameKind kind, Deadline deadline);
  void hear_hello(const Frame& frame);
  void hear_proof(const Frame& frame);
  // Of `why`, for the log, a stranger hears only what is `told`.
  [[noreturn]] void refuse(const std::string& told, const std::string& why = "");
  Secret derived(std::string_view purpose, std::span<const std::byte> key) const;
  void seal(const Seal& seal, std::span<const std::byte> key);

  Connection line_;
  Handshake words_;
  std::vector<std::byte> key_;  // at the server, from the hello on
  Secret secret_;
};

}  // namespace waywiser
