#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/explorer/network.hpp"
#include "waywiser/base/error.hpp"
#include "waywiser/comm/network/network_paths.hpp"
#include "waywiser/comm/peer_memory/gpu_connections.hpp"
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
    receive(peer, tag, matched_bits, data, bytes, message);
  }
  void receive_headed(std::uint32_t, ucp_tag_t, const MessageHead&, void*, std::size_t, Message&) {
    throw Error(ErrorKind::unavailable, "this network has no rails");
  }
  void send_rts(std::uint32_t peer, ucp_tag_t tag, Message& message) { send_sized(peer, tag, nullptr, 0, message); }
  void send(std::uint32_t peer, ucp_tag_t tag, const void* data, std::size_t bytes, Message& message) {
    send_sized(peer, tag, data, bytes, message);
  }
  void receive(std::uint32_t peer, ucp_tag_t tag, ucp_tag_t mask, void* data, std::size_t bytes, Message& message) {
    network_.receive(peer, rank_, tag, mask, data, bytes, message);
  }
  bool test(Message& message) { return message.request == nullptr; }
  void cancel(Message& message) noexcept { network_.cancel(message); }
  HeldMemory& held() noexcept { return held_; }

  // There is no plan.
  const NetworkPaths& ways() const noexcept { return ways_; }
  std::optional<std::size_t> find_way(std::uint32_t, Place, Place, Bytes) const { return {}; }
  std::string why_no_way(std::size_t, std::uint32_t, bool) const { return "there is no plan"; }
  void send_by(std::size_t, std::uint32_t, ucp_tag_t, ConstRegion, Message&) {}
  void receive_by(std::size_t, std::uint32_t, ucp_tag_t, Region, Message&) {}

 private:
  explorer::Network& network_;
  std::uint32_t rank_;
  HeldMemory held_;
  NetworkPaths ways_{nullptr};
};

// With GPUs when there are devices.
class Session {
 public:
  Session(explorer::Network& network, int rank) : engine_(network, static_cast<std::uint32_t>(rank)), rank_(rank) {}
  Session(explorer::Network& network, int rank, explorer::Devices& devices, const explorer::Reach& reach)
      : Session(network, rank) {
    same_machine_ = reach.same_machine;
    platform_ = std::make_unique<explorer::ExploredPlatform>(devices);
    peer_memory_ = std::make_unique<PeerMemory>(rank == 0 ? reach.sender_shares : reach.receiver_shares);
    gpu_connections_ =
        std::make_unique<GpuConnections>(devices, *platform_, reach.receiver_reads, rank == 1 || reach.sender_opens);
  }

  int rank() const noexcept { return rank_; }
  Engine& engine() noexcept { return engine_; }
  [[noreturn]] void fail(ErrorKind kind, const std::string& why) { throw Error(kind, why); }
  void give_up(Activity& operation) noexcept { operation.abandon(); }
  bool same_machine(int) const { return same_machine_; }
  bool gpus_send() const noexcept { return true; }
  Seconds timeout() const noexcept { return 60; }
  Platform& platform() { return *platform_; }
  PeerMemory& peer_memory() { return *peer_memory_; }
  GpuConnections& gpu_connections() { return *gpu_connections_; }
  void note_staged(int, const std::string& why) { why_staged = why; }
  void give_back_rts_number(unsigned) { ++numbers_given_back; }

  std::string why_staged;
  int numbers_given_back = 0;

 private:
  Engine engine_;
  int rank_;
  bool same_machine_ = true;
  std::unique_ptr<Platform> platform_;
  std::unique_ptr<PeerMemory> peer_memory_;
  std::unique_ptr<GpuConnections> gpu_connections_;
};

}  // namespace waywiser
