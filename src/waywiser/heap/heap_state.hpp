#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "waywiser/base/error.hpp"
#include "waywiser/comm/session/watchdog.hpp"
#include "waywiser/device/platform.hpp"
#include "waywiser/group/group.hpp"
#include "waywiser/group/inside.hpp"
#include "waywiser/heap/heap.hpp"
#include "waywiser/heap/proxy/heap_proxy.hpp"

namespace waywiser {

// The group has failed: whatever waits in kernels of a heap stops.
class HeapWard : public Watchdog::Ward {
 public:
  HeapWard(Session& session, one_sided::FaultNotice& notice);
  HeapWard(const HeapWard&) = delete;
  HeapWard& operator=(const HeapWard&) = delete;
  ~HeapWard() override;

  std::optional<Error> failure(const std::string&) const override { return {}; }
  bool is_gone() const override { return true; }
  void stop() noexcept override;
  void settle() override {}
  void let_go() noexcept override {}

 private:
  Session& session_;
  one_sided::FaultNotice& notice_;
};

// What each rank tells the others of its part of a heap.
struct HeapOffer {
  SharedRegion memory;
  Bytes bytes = 0;
  bool on_gpu = false;
  std::array<char, 64> name{};
  ErrorKind kind = ErrorKind::unavailable;
  std::array<char, 256> why_not{};
};

// How a rank reaches the others.
struct HeapReach {
  std::uint64_t not_reached = 0;  // bits of ranks
  std::uint64_t has_lines = 1;    // its stores arrive in whole lines everywhere
};

// The parts of a heap, which its teams share.
struct [[gnu::visibility("hidden")]] Heap::State {
  // Collective.
  State(Group& group, const std::string& name, Place place, Bytes bytes);
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State();

  // Around each call of the host: keeps other threads out of it, but not the progress thread.
  GroupHold alone() const { return GroupHold(group); }
  void check_rank(int rank) const;
  // Memory of another rank for this one's kernels. Throws unavailable or device.
  Memory open(const SharedRegion& shared) const;
  one_sided::HeapTerms terms(const Stream* stream) const;
  std::optional<Error> fault() const;
  // Why the group has failed.
  std::string why_failed() const;
  Session& session() const { return session_of(group); }
  // A wait of this rank.
  Call wait_call() const;
  // For a wait of this thread that runs elsewhere: throws as every call of the group does if that has failed, or if
  // this rank is interrupted, which then fails it.
  void look() const;
  // Waits until the stream has run what is enqueued; throws as a call of the group.
  void await(Stream& stream) const;
  // The offset of the next ticket of the proxy's ring.
  Bytes next_ticket() const noexcept { return counters + one_sided::team_packets_at(one_sided::most_teams); }
  // Zeros in this rank's memory.
  void clear(Region region) const;

  Group& group;
  const std::string name;
  const Place place;
  const Bytes bytes;
  const Bytes counters;  // the offset of the counters of teams
  Seconds deadline;
  std::shared_ptr<Platform> platform;
  Memory own, notice;
  std::unique_ptr<HeapWard> ward;        // stops waits in kernels
  MemoryHandle exported;                 // of host memory: others open it by this
  std::vector<Memory> opened;            // by rank
  std::vector<std::string> why_proxied;  // by rank
  std::optional<Group> of_proxy;         // its messages are of this group
  std::shared_ptr<HeapProxy> proxy;      // nullptr: all ranks reach all
  std::vector<Memory> tickets;           // opened
  std::atomic<std::uint64_t> teams{0};   // bits of slots in use at this rank
  std::string why_no_lines;              // at all ranks
  one_sided::Protocols protocols;        // of messages, the same at all ranks

 private:
  HeapOffer make_part();
  // Opens the memory of the others.
  HeapReach reach_all(const std::vector<HeapOffer>& all);
  // All ranks follow one plan.
  void choose_protocols(const std::vector<HeapReach>& all);
  void make_proxy(const std::vector<HeapReach>& reached);
  std::vector<HeapOffer> offers_of_all(const HeapOffer& mine) const;
  std::string why_not_reached(int rank, const HeapOffer& theirs) const;
  // Whether stores to that rank become visible in whole lines.
  bool arrive_in_lines(const HeapOffer& theirs) const;
};

// Equal bytes of each rank, by rank. Collective.
template <typename T>
std::vector<T> heap_gather(Group& group, const T& mine) {
  std::vector<T> all(static_cast<std::size_t>(group.size()));
  group.all_gather(
      ConstElements(ConstRegion{reinterpret_cast<const std::byte*>(&mine), sizeof(T), host(0)}, DataType::uint8),
      Elements(Region{reinterpret_cast<std::byte*>(all.data()), all.size() * sizeof(T), host(0)}, DataType::uint8));
  return all;
}

// Host memory that was allocated to be shared, by bytes alone. Throws unavailable or device.
SharedRegion share_host(const MemoryHandle& handle);
Memory open_shared_host(Platform& platform, const SharedRegion& shared, Place place);

}  // namespace waywiser
