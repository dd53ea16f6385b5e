#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tests/explorer/network.hpp"
#include "waywiser/base/error.hpp"
#include "waywiser/comm/session/activity.hpp"
#include "waywiser/comm/session/held_memory.hpp"
#include "waywiser/comm/shared_memory/lane.hpp"

namespace waywiser {

enum class Awaited { later, by_sender, by_all };

// In place of the session and its engine, for activities that are explored: what they use of them, on a network whose
// every order is tried.
class Engine {
 public:
  Engine(explorer::Network& network, std::uint32_t rank) : network_(network), rank_(rank) {}

  void send_sized(std::uint32_t peer, ucp_tag_t tag, const void* data, std::size_t bytes, Message& message,
                  Awaited = Awaited::later) {
    network_.send(rank_, peer, tag, data, bytes, message);
  }
  void receive_sized(std::uint32_t peer, ucp_tag_t tag, void* data, std::size_t bytes, Message& message) {
    network_.receive(peer, rank_, tag, matched_bits, data, bytes, message);
  }
  bool test(Message& message) { return message.request == nullptr; }
  void cancel(Message& message) noexcept { network_.cancel(message); }
  HeldMemory& held() noexcept { return held_; }

 private:
  explorer::Network& network_;
  std::uint32_t rank_;
  HeldMemory held_;
};

class Session {
 public:
  Session(explorer::Network& network, int rank) : engine_(network, static_cast<std::uint32_t>(rank)), rank_(rank) {}

  int rank() const noexcept { return rank_; }
  Engine& engine() noexcept { return engine_; }
  [[noreturn]] void fail(ErrorKind kind, const std::string& why) { throw Error(kind, why); }
  void give_up(Activity& operation) noexcept { operation.abandon(); }

 private:
  Engine engine_;
  int rank_;
};

}  // namespace waywiser
