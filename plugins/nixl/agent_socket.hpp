#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "copy_order.hpp"
#include "memory_table.hpp"

namespace waywiser_nixl {

// Closes itself.
class Socket {
 public:
  explicit Socket(int number = -1) : number_(number) {}
  Socket(Socket&& other) noexcept : number_(other.number_) { other.number_ = -1; }
  Socket& operator=(Socket&& other) noexcept;
  ~Socket();
  int number() const { return number_; }
  explicit operator bool() const { return number_ >= 0; }

 private:
  int number_;
};

// How an agent tells others where it is: its machine and the random name of its socket.
struct AgentAddress {
  std::string machine;  // the kernel's number of this start of the machine
  std::string socket;

  std::string text() const;
};
AgentAddress new_address();
// Throws Refusal for anything but what text() writes.
AgentAddress address_from(const std::string& text);
std::string this_machine();

// What a new connection begins with, from the agent that asks, before its name; then from the other one, with the
// descriptor of its table.
struct Greeting {
  std::uint64_t magic;
  std::uint64_t name_bytes;
};
struct Reply {
  std::uint64_t magic;
  std::uint64_t proof_address;  // where a Proof stands in that process, to try whether its memory can be read
  std::uint64_t word;
  std::uint64_t has_driver;  // of CUDA: it may be asked to copy
};
struct Proof {
  std::uint64_t word = 0;
  Key key{};  // to order copies with
};
inline constexpr std::uint64_t magic = 0x32'6c'78'69'6e'2d'77'77;
inline constexpr std::size_t longest_name = 4096;
inline constexpr std::size_t longest_notification = std::size_t{64} << 20;
// A frame to an agent is its length in bytes, with this if it is an order and not a notification, and its bytes.
inline constexpr std::uint64_t is_order = std::uint64_t{1} << 63;

struct OtherEnd {
  pid_t process = 0;
  uid_t user = 0;
};

Socket listen_at(const std::string& name);   // throws Refusal
Socket connect_to(const std::string& name);  // throws Refusal
OtherEnd other_end(const Socket& socket);    // by the kernel
bool send_all(const Socket& socket, std::string_view bytes, Clock::time_point deadline) noexcept;
bool receive_reply(const Socket& socket, Reply& reply, int& descriptor, Clock::time_point deadline) noexcept;
bool send_reply(int socket, const Reply& reply, int descriptor) noexcept;

}  // namespace waywiser_nixl
