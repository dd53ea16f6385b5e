#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "waywiser/offload/array_head.hpp"

namespace waywiser {

// Between two workers of one client, for one array. Everything throws what a group throws.
class WorkerLine {
 public:
  virtual ~WorkerLine() = default;
  virtual void send(std::span<const std::byte> bytes) = 0;
  virtual void receive(std::span<std::byte> bytes) = 0;
  // Both ends are done.
  virtual void close() = 0;
};

// How two workers meet. They prove to each other a secret that their client has made for this line alone.
class WorkerLines {
 public:
  virtual ~WorkerLines() = default;
  // Calls `announce(address)`, then waits for the other worker. `plain`: no encryption, also between machines; both
  // sides must ask for it. Throws unavailable where the owner does not admit that.
  virtual std::unique_ptr<WorkerLine> wait(const std::string& secret, bool plain,
                                           const std::function<void(const std::string& address)>& announce) = 0;
  virtual std::unique_ptr<WorkerLine> join(const std::string& secret, bool plain, const std::string& address) = 0;
};

inline constexpr std::size_t digits_of_secret = 64;  // of its secret, hexadecimal
inline constexpr std::size_t longest_address = 64;   // of where a worker waits

// Whether the owner of this server lets it connect to a host that a client names.
using MayJoin = std::function<bool(const std::string& host)>;

// Whether what leaves this machine is encrypted, and whether a client may do without.
struct LineEncryption {
  bool encrypt = true, admits_plain = false;
};

// Lines that begin at `host`, an address of this machine, and lead to it, or to where `may_join` says.
std::unique_ptr<WorkerLines> open_worker_lines(std::string host, LineEncryption encryption, MayJoin may_join);

}  // namespace waywiser
