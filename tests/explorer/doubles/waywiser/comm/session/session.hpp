#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/explorer/network.hpp"
#include "tests/explorer/one_sided.hpp"
#include "waywiser/base/error.hpp"
#include "waywiser/comm/message/activity.hpp"
#include "waywiser/comm/message/carrier.hpp"
#include "waywiser/comm/message/held_memory.hpp"
#include "waywiser/comm/network/network_paths.hpp"
#include "waywiser/comm/peer_memory/gpu_connections.hpp"
#include "waywiser/comm/shared_memory/lane.hpp"

namespace waywiser {

struct UcxMemory {
  std::vector<std::byte> key() const { return std::vector<std::byte>(8); }
};
struct UcxRemoteMemory {};

// In place of the session and its engine, for activities that are explored: what they use of them, on a network whose
// every order is tried.
class Engine {
 public:
  Engine(explorer::Network& network, std::uint32_t rank, explorer::OneSided* one_sided)
      : network_(network), rank_(rank), one_sided_(one_sided) {}

  void send_sized(std::uint32_t peer, Tag tag, const void* data, std::size_t bytes, Message& message,
                  Awaited = Awaited::later) {
    network_.send(rank_, peer, tag, data, bytes, message);
  }
  void receive_sized(std::uint32_t peer, Tag tag, void* data, std::size_t bytes, Message& message) {
    receive(peer, tag, data, bytes, message);
  }
  void receive_headed(std::uint32_t, Tag, const MessageHead&, void*, std::size_t, Message&) {
    throw Error(ErrorKind::unavailable, "this network has no rails");
  }
  void send(std::uint32_t peer, Tag tag, const void* data, std::size_t bytes, Message& message) {
    send_sized(peer, tag, data, bytes, message);
  }
  void receive(std::uint32_t peer, Tag tag, void* data, std::size_t bytes, Message& message) {
    network_.receive(peer, rank_, tag, matched_bits, data, bytes, message);
  }
  bool test(Message& message) { return !message.is_open(); }
  void cancel(Message& message) noexcept { network_.cancel(message); }
  HeldMemory& held() noexcept { return held_; }

  // Of UCX: one-sided accesses.
  struct Ucx {
    std::unique_ptr<UcxMemory> expose(Region) const { return std::make_unique<UcxMemory>(); }
    std::unique_ptr<UcxRemoteMemory> open_memory(std::uint32_t, const std::vector<std::byte>&) const {
      return std::make_unique<UcxRemoteMemory>();
    }
    void* put(const UcxRemoteMemory&, std::uint64_t address, ConstRegion data, const Call&, std::uint32_t) const {
      return one_sided->put(rank, address, data);
    }
    void* get(const UcxRemoteMemory&, std::uint64_t address, Region data, const Call&, std::uint32_t) const {
      return one_sided->get(rank, address, data);
    }
    void* flush_puts(const Call&) const { return one_sided->flush(rank); }
    bool is_over(void*& access, const Call&) const { return one_sided->is_over(access); }
    void give_up_one_sided(void*, std::uint32_t) noexcept {}
    explorer::OneSided* one_sided;
    std::uint32_t rank;
  };
  Ucx ucx() const { return {one_sided_, rank_}; }

  // There is no plan.
  const NetworkPaths& ways() const noexcept { return ways_; }
  std::optional<std::size_t> find_way(std::uint32_t, Place, Place, Bytes) const { return {}; }
  std::string why_no_way(std::size_t, std::uint32_t, bool) const { return "there is no plan"; }
  void send_by(std::size_t, std::uint32_t, Tag, ConstRegion, Message&) {}
  void receive_by(std::size_t, std::uint32_t, Tag, Region, Message&) {}

 private:
  explorer::Network& network_;
  std::uint32_t rank_;
  explorer::OneSided* one_sided_;
  HeldMemory held_;
  NetworkPaths ways_{nullptr};
};

class RankGpus {
 public:
  void open(int rank, explorer::Devices& devices, const explorer::Reach& reach) {
    platform_ = std::make_unique<explorer::ExploredPlatform>(devices);
    peer_memory_ = std::make_unique<PeerMemory>(rank == 0 ? reach.sender_shares : reach.receiver_shares);
    connections_ =
        std::make_unique<GpuConnections>(devices, *platform_, reach.receiver_reads, rank == 1 || reach.sender_opens);
  }
  Platform& platform() { return *platform_; }
  PeerMemory& peer_memory() { return *peer_memory_; }
  GpuConnections& connections() { return *connections_; }
  bool any_sends() const noexcept { return true; }
  void note_staged(int, const std::string& why) { why_staged = why; }
  bool host_sends(int) const noexcept { return false; }
  void note_sender(int, bool) {}

  std::string why_staged;

 private:
  std::unique_ptr<Platform> platform_;
  std::unique_ptr<PeerMemory> peer_memory_;
  std::unique_ptr<GpuConnections> connections_;
};

struct RtsNumbers {
  void give_back(unsigned) { ++given_back; }
  int given_back = 0;
};

// With GPUs when there are devices.
class Session {
 public:
  Session(explorer::Network& network, int rank) : engine_(network, static_cast<std::uint32_t>(rank), {}), rank_(rank) {}
  Session(explorer::Network& network, int rank, explorer::Course& course, explorer::OneSided& one_sided)
      : engine_(network, static_cast<std::uint32_t>(rank), &one_sided), rank_(rank), course_(&course) {}
  Session(explorer::Network& network, int rank, explorer::Devices& devices, const explorer::Reach& reach)
      : Session(network, rank) {
    same_machine_ = reach.same_machine;
    gpus_.open(rank, devices, reach);
  }

  int rank() const noexcept { return rank_; }
  Engine& engine() noexcept { return engine_; }
  [[noreturn]] void fail(ErrorKind kind, const std::string& why) { throw Error(kind, why); }
  void give_up(Activity& operation) noexcept { operation.abandon(); }
  void wait(Activity& operation) {
    while (!operation.advance()) course_->idle();
  }
  bool is_forked() const noexcept { return false; }
  bool same_machine(int) const { return same_machine_; }
  Seconds timeout() const noexcept { return 60; }
  RankGpus& gpus() { return gpus_; }
  RtsNumbers rts;

 private:
  Engine engine_;
  int rank_;
  explorer::Course* course_ = nullptr;  // of ranks that wait
  bool same_machine_ = true;
  RankGpus gpus_;
};

}  // namespace waywiser
