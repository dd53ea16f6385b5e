#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "waywiser/device/platform.hpp"
#include "waywiser/group/group.hpp"
#include "waywiser/heap/heap.hpp"
#include "waywiser/heap/nvshmem/free_list.hpp"
#include "waywiser/heap/nvshmem/nvshmem_terms.hpp"

namespace waywiser {

// What stands behind the names of NVSHMEM in a process: one heap, what is allocated in it, and teams by handles. Throws
// as Heap does.
class NvshmemJob {
 public:
  static constexpr int world = 0, shared = 1, node = 2, no_team = -1;

  // The size of a heap for programs that ask for so many bytes: NVSHMEM gives whole granules, and they count on it.
  static Bytes in_granules(Bytes bytes) noexcept;

  // Collective. The heap of `bytes` is made by the first open().
  NvshmemJob(Group& group, Bytes bytes);

  int rank() const noexcept { return group_.rank(); }
  int size() const noexcept { return group_.size(); }
  // Collective at the first call.
  void open(Place place);
  // Throws invalid_input before open().
  const Heap& heap() const;
  bool is_open() const noexcept { return heap_.has_value(); }
  NvshmemTerms terms() const;

  // Collective, with equal arguments: throws invalid_input at all ranks if they differ. nullptr: no room.
  std::byte* allocate(Bytes bytes, Bytes alignment, bool zeros);
  void release(const std::byte* symmetric);
  // Where a symmetric address is at a rank; nullptr: it is none, or stores do not reach the rank.
  std::byte* pointer(const std::byte* symmetric, int rank) const;
  // The offset of bytes in the heap. Throws invalid_input for others.
  Bytes offset(const void* symmetric, Bytes bytes) const;

  // Complete when they return.
  void put(void* destination, const void* source, Bytes bytes, int rank);
  void get(void* destination, const void* source, Bytes bytes, int rank);
  // Memory of the host or of a GPU, as copies need it.
  Region region_of(const void* data, Bytes bytes) const;

  // Collective over all ranks. `parent` is a team of all ranks. A rank outside gets no_team.
  int split_strided(int parent, int start, int stride, int size);
  void split_2d(int parent, int columns, int& row, int& column);
  // Throws invalid_input for a team that the program has not made.
  void destroy(int team);
  const HeapTeam& team(int handle) const;
  // Rank in a team, and its size; the predefined ones also before open(). no_team: there is no such team or rank.
  int rank_in(int team) const;
  int size_of(int team) const;
  int translate(int from_team, int rank, int to_team) const;

  // For calls that are complete when they return.
  Stream& own_stream();
  void wait_for_own_stream();

 private:
  Platform& platform() const;
  std::vector<int> members(int team) const;
  int keep(std::optional<HeapTeam> team);
  void check_parent(int parent) const;
  void check_equal(const char* call, Bytes a, Bytes b) const;

  Group& group_;
  const Bytes bytes_;
  std::vector<int> ranks_of_machine_;
  std::optional<Heap> heap_;
  std::shared_ptr<Platform> platform_;
  std::unique_ptr<Stream> stream_;
  FreeList parts_;
  std::vector<std::optional<HeapTeam>> teams_;  // by handle
};

}  // namespace waywiser
