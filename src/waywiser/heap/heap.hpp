#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "waywiser/base/units.hpp"
#include "waywiser/comm/data_type.hpp"
#include "waywiser/device/region.hpp"
#include "waywiser/heap/device/terms.hpp"

namespace waywiser {

class Group;
class Stream;

// A handle of 192 bytes to GPU memory that another rank of this machine can open. Send it in any message.
struct HeapTicket {
  std::array<std::byte, 192> data{};
};

class HeapTeam;

// Memory of equal size at all ranks of a group, for one-sided communication inside kernels: waywiser/one_sided.cuh. An
// offset names the same place at all ranks. The making of a heap and of teams is collective, all else is local. The
// group must outlive it, and it must live until all ranks have finished their accesses: a barrier tells when. Threads:
// its calls are calls of the group. One that was moved from can be assigned to and destroyed; its calls throw
// invalid_input.
class [[gnu::visibility("default")]] Heap {
 public:
  // Collective: `bytes` of zeros at each rank, all in host memory or all on GPUs. Throws at all ranks: invalid_input if
  // names, sizes or kinds of places differ; unavailable for more than 64 ranks; what one rank's allocation throws.
  Heap(Group& group, const std::string& name, Place place, Bytes bytes);
  Heap(Heap&& other) noexcept;
  Heap& operator=(Heap&& other) noexcept;
  ~Heap();

  const std::string& name() const;
  // The memory of this rank.
  Region local() const;
  // The memory of a rank, as kernels and copies of this one reach it. Throws unavailable with why_proxied.
  Region peer(int rank) const;
  // Why stores of this rank do not reach the memory of another one; empty if they do. The hosts carry such accesses,
  // as messages of the group, in the turns of its progress thread.
  std::string why_proxied(int rank) const;

  // A ticket of GPU memory that is already there, whoever allocated it. Throws unavailable or device.
  HeapTicket share(ConstRegion own) const;
  // The memory of a ticket, as kernels of this heap's GPU reach it while the heap lives: device functions take it with
  // the rank `opened`. Its owner must keep it as long. Throws unavailable or device.
  Region open(const HeapTicket& ticket);

  // For kernels on a stream of the heap's GPU; for threads of the host.
  one_sided::HeapTerms terms(const Stream& stream) const;
  one_sided::HeapTerms terms() const;
  // The bytes of the heap that an inbox takes for messages of at most so many: one_sided::put_message.
  Bytes inbox_bytes(Bytes most) const;
  // Why messages do not go by LL128; empty if those of some sizes may.
  const std::string& why_no_lines() const;
  // The limit of each wait in later kernels; at first the group's timeout.
  void set_deadline(Seconds deadline);
  // Throws if a kernel of this rank has stopped: timeout for a wait, invalid_input for an access outside the heap; io
  // if the group has failed; interrupted. Waits in kernels end when the group has failed.
  void check() const;
  // Waits for the stream, at most for the group's timeout and the deadline of a wait, and for what the hosts carry.
  // Throws the same, and as every call of the group.
  void synchronize(Stream& stream) const;

  // Calls of the host, in the order of a stream of the heap's GPU, which may be captured; on the stream of a host they
  // are over when they return, and throw what check() does. Throw invalid_input for what is outside. `data` may be
  // reused when the stream has come so far; a signal after it is seen after it.
  void put(Stream& stream, ConstRegion data, int to, Bytes offset) const;
  void get(Stream& stream, Region data, int from, Bytes offset) const;
  void signal(Stream& stream, int to, Bytes offset, std::uint64_t value,
              one_sided::SignalOp op = one_sided::SignalOp::set) const;
  // Waits for a word of this rank. `from`: the rank that is to change it, for the error.
  void wait(Stream& stream, Bytes offset, one_sided::Comparison comparison, std::uint64_t value,
            int from = one_sided::any_rank) const;
  // Waits until the word is at least `count`, and subtracts that: for graphs, with signals that add.
  void wait_and_take(Stream& stream, Bytes offset, std::uint64_t count, int from = one_sided::any_rank) const;
  // All members call it equally often, between their kernels' calls of the team.
  void barrier(Stream& stream, const HeapTeam& team) const;
  // Collectives of a team, as one_sided::Team has them and in one order with its calls. Arrays are offsets in the heap;
  // `bytes`: of one part. They must not overlap, but broadcast and reduce may have both at one place.
  void broadcast(Stream& stream, const HeapTeam& team, Bytes destination, Bytes source, Bytes bytes, int root) const;
  void all_gather(Stream& stream, const HeapTeam& team, Bytes destination, Bytes source, Bytes bytes) const;
  void all_to_all(Stream& stream, const HeapTeam& team, Bytes destination, Bytes source, Bytes bytes) const;
  // Throws invalid_input for complex numbers, for 8-bit floats, and for bits of floats.
  void reduce(Stream& stream, const HeapTeam& team, Bytes destination, Bytes source, std::uint64_t count, DataType type,
              one_sided::TeamOp op) const;

  // Teams; ranks in order of key, then rank. A color below 0 gives no team. Collective over the group. Throws
  // unavailable at all ranks with 64 teams.
  std::optional<HeapTeam> split(int color, int key = 0);
  // Ranks start, start + stride, ...; `size` of them. Throws invalid_input, at all ranks if all gave the same.
  std::optional<HeapTeam> split_strided(int start, int stride, int size);
  // The row and the column of this rank in a grid with so many columns.
  std::pair<HeapTeam, HeapTeam> split_2d(int columns);
  // All ranks. Throws as split().
  HeapTeam world();

  struct State;

 private:
  State& held() const;  // throws if this was moved from

  std::shared_ptr<State> state_;
};

// Ranks of a heap for collective calls inside kernels: one_sided::Team. It may go when no kernel uses it any more.
class [[gnu::visibility("default")]] HeapTeam {
 public:
  HeapTeam(HeapTeam&& other) noexcept;
  HeapTeam& operator=(HeapTeam&& other) noexcept;
  ~HeapTeam();

  int rank() const noexcept { return terms_.rank; }
  int size() const noexcept { return terms_.size; }
  const one_sided::TeamTerms& terms() const noexcept { return terms_; }

 private:
  friend class Heap;
  HeapTeam(std::shared_ptr<Heap::State> state, const one_sided::TeamTerms& terms);

  std::shared_ptr<Heap::State> state_;
  one_sided::TeamTerms terms_;
};

}  // namespace waywiser
