#pragma once

#include <cstring>
#include <string>

#include "tests/comm/test_ranks.hpp"
#include "tests/heap/body_ranks.hpp"
#include "waywiser/device/platform.hpp"
#include "waywiser/heap/heap.hpp"
#include "waywiser/heap/heap_state.hpp"

namespace waywiser {

// Runs a body at all ranks with a heap of its own; launch(stream, terms, more) enqueues it. Throws what it finds. With
// less than 100 turns less is done of all else too, for what is slow.
template <typename Launch>
void run_body(Group& group, Place place, const std::string& name, std::uint64_t turns, Seconds deadline,
              const Launch& launch) {
  using one_sided::Verdict;
  const std::shared_ptr<Platform> platform =
      place.is_gpu() ? group.platform() : std::shared_ptr<Platform>(open_host_platform());
  const auto stream = platform->open_stream(place);
  const Memory pinned = platform->allocate(host(0), 4096, Allocation::pinned);
  Heap heap(group, name, place, one_sided::body_bytes);
  heap.set_deadline(deadline);
  const HeapTeam team = heap.world();
  one_sided::BodyTerms more{team.terms(), turns};
  more.times = turns < 100 ? 1 : 20;
  more.unit_step = turns < 100 ? 8 : 1;
  Memory shared;
  bool all_reached = true;
  for (int rank = 0; rank < group.size(); ++rank) all_reached = all_reached && heap.why_proxied(rank).empty();
  if (place.is_gpu() && all_reached) {
    shared = platform->allocate(place, 4096, Allocation::gpu);
    std::memset(pinned.region().data, 0, 4096);
    stream->copy(shared.region(), pinned.region().slice(0, 4096));
    stream->synchronize(Deadline::in(20));
    const auto tickets = heap_gather(group, heap.share(shared.region()));
    const auto right = static_cast<std::size_t>((group.rank() + 1) % group.size());
    more.mine = stream->reach(shared.region());
    more.theirs = stream->reach(heap.open(tickets[right]));
  }
  group.barrier();
  launch(*stream, place.is_gpu() ? heap.terms(*stream) : heap.terms(), more);
  heap.synchronize(*stream);
  stream->copy(pinned.region().slice(0, sizeof(Verdict)), heap.local().slice(0, sizeof(Verdict)));
  stream->synchronize(Deadline::in(20));
  Verdict found;
  std::memcpy(&found, pinned.region().data, sizeof found);
  require_that(found.line == 0, name + ": line " + std::to_string(found.line) + " at " + std::to_string(found.index) +
                                    ", thread " + std::to_string(found.thread) + ": " + std::to_string(found.wanted) +
                                    ", not " + std::to_string(found.seen));
  group.barrier();
}

}  // namespace waywiser
