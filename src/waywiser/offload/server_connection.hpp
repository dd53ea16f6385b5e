#pragma once

#include <array>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "waywiser/base/crypto.hpp"
#include "waywiser/base/json.hpp"
#include "waywiser/comm/bootstrap/endpoint.hpp"
#include "waywiser/device/descriptor.hpp"

namespace waywiser {

// The key in a file that only its owner reads: at least 64 hexadecimal digits, white space before and after them. An
// empty path: the usual file, waywiser/serve.key in the user's folder for configuration. Throws invalid_input.
std::vector<std::byte> read_serve_key(const std::filesystem::path& file);

// A client's connection to `waywiser serve`, after both have proved that they know the key:
// python/waywiser/offload/handshake.py has the messages. All waits end after 5 s, if nothing else is said.
class ServerConnection {
 public:
  // Throws invalid_input if the server does not know the key or refuses it, io if it cannot be reached, timeout.
  ServerConnection(const std::string& address, std::span<const std::byte> key);
  // Connects, asks and waits `patience` for the answer; again until `deadline` while the server has too many strangers.
  // Throws as the constructor and receive.
  static std::pair<std::shared_ptr<ServerConnection>, Json> ask(const std::string& address,
                                                                std::span<const std::byte> key, const Json& question,
                                                                Seconds patience, Deadline deadline);

  void send(const Json& message);
  // Throws invalid_input with the server's words if it refuses.
  Json receive(Seconds patience);
  // Hexadecimal digits that only both ends know, for the group that they form.
  const Secret& secret() const noexcept { return secret_; }

 private:
  void write(std::span<const std::byte> bytes);
  std::vector<std::byte> read(std::size_t count, Deadline deadline);
  void greet(std::span<const std::byte> key);

  std::string address_;
  Descriptor socket_;
  Secret secret_;
  Digest mine_{}, theirs_{};
  std::uint64_t sent_ = 0, received_ = 0;
};

}  // namespace waywiser
