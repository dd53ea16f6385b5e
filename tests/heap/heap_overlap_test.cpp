// Calls of the host on a heap with every overlap of what is read and what is written: right, or refused before
// anything has moved.
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

#include "tests/base/error_of.hpp"
#include "tests/heap/heap_ranks.hpp"
#include "waywiser/device/stream.hpp"

namespace waywiser::overlapping::heaps {
namespace {

using Numbers = std::vector<std::int32_t>;

constexpr int members = 3;
constexpr std::size_t count = 4, whole = count * members, read_from = whole, room = 3 * whole;

Bytes bytes_of_numbers(std::size_t numbers) { return numbers * sizeof(std::int32_t); }

Numbers numbers_of(int rank) {
  Numbers numbers(room);
  std::iota(numbers.begin(), numbers.end(), 1000 * (rank + 1));
  return numbers;
}

struct Call {
  std::string name;
  std::size_t read, written;  // elements
  bool may_be_same;
  std::function<void(const Heap&, Stream&, const HeapTeam&, Bytes from, Bytes to)> call;
  std::function<std::int32_t(int rank, std::size_t at)> result;  // of an element that is written
};

std::vector<Call> calls(int me) {
  const Bytes one = bytes_of_numbers(count);
  const auto had = [](int rank, std::size_t at) { return numbers_of(rank)[read_from + at]; };
  return {
      {"put", count, count, false,
       [=](auto& heap, auto& stream, auto&, Bytes from, Bytes to) {
         heap.put(stream, heap.local().slice(from, one), me, to);
       },
       had},
      {"get", count, count, false,
       [=](auto& heap, auto& stream, auto&, Bytes from, Bytes to) {
         heap.get(stream, heap.local().slice(to, one), me, from);
       },
       had},
      {"broadcast", count, count, true,
       [=](auto& heap, auto& stream, auto& team, Bytes from, Bytes to) {
         heap.broadcast(stream, team, to, from, one, 1);
       },
       [=](int, std::size_t at) { return had(1, at); }},
      {"all_gather", count, whole, false,
       [=](auto& heap, auto& stream, auto& team, Bytes from, Bytes to) {
         heap.all_gather(stream, team, to, from, one);
       },
       [=](int, std::size_t at) { return had(static_cast<int>(at / count), at % count); }},
      {"all_to_all", whole, whole, false,
       [=](auto& heap, auto& stream, auto& team, Bytes from, Bytes to) {
         heap.all_to_all(stream, team, to, from, one);
       },
       [=](int rank, std::size_t at) {
         return had(static_cast<int>(at / count), static_cast<std::size_t>(rank) * count + at % count);
       }},
      {"reduce", count, count, true,
       [=](auto& heap, auto& stream, auto& team, Bytes from, Bytes to) {
         heap.reduce(stream, team, to, from, count, DataType::int32, one_sided::TeamOp::sum);
       },
       [=](int, std::size_t at) { return had(0, at) + had(1, at) + had(2, at); }},
  };
}

void every_overlap(Group& group, Place place) {
  Heap heap(group, "overlap", place, bytes_of_numbers(room));
  const HeapTeam team = heap.world();
  const std::shared_ptr<Platform> platform =
      place.is_gpu() ? group.platform() : std::shared_ptr<Platform>(open_host_platform());
  const auto stream = platform->open_stream(place);
  const Memory pinned = platform->allocate(host(0), heap.local().bytes, Allocation::pinned);
  const auto to_heap = [&](const Numbers& numbers) {
    std::memcpy(pinned.region().data, numbers.data(), heap.local().bytes);
    stream->copy(heap.local(), pinned.region().slice(0, heap.local().bytes));
    heap.synchronize(*stream);
    group.barrier();
  };
  const auto out_of_heap = [&] {
    heap.synchronize(*stream);
    stream->copy(pinned.region().slice(0, heap.local().bytes), heap.local());
    heap.synchronize(*stream);
    Numbers numbers(room);
    std::memcpy(numbers.data(), pinned.region().data, heap.local().bytes);
    return numbers;
  };
  for (const Call& each : calls(group.rank()))
    for (std::size_t to = 0; to + each.written <= room; ++to) {
      const bool apart = to + each.written <= read_from || read_from + each.read <= to;
      const bool may = apart || (each.may_be_same && to == read_from);
      const std::string text = each.name + " from " + std::to_string(read_from) + " to " + std::to_string(to);
      Numbers wanted = numbers_of(group.rank());
      to_heap(wanted);
      const std::string said =
          error_of([&] { each.call(heap, *stream, team, bytes_of_numbers(read_from), bytes_of_numbers(to)); });
      require_that(may ? said == "no error" : said.find("overlap") != std::string::npos, text + ": " + said);
      for (std::size_t i = 0; may && i < each.written; ++i) wanted[to + i] = each.result(group.rank(), i);
      require_that(out_of_heap() == wanted, text + ": the numbers");
      group.barrier();
    }
}

using HostTeam = one_sided::Team<one_sided::HostHeapBlock>;
using TeamCall = std::function<void(const HostTeam&, std::int32_t* to, const std::int32_t* from)>;

// A kernel that makes the call. It ends the use of the heap, and of a GPU.
void kernel_stops(Group& group, Place place, const TeamCall& call, std::size_t to) {
  Heap heap(group, "kernels", place, bytes_of_numbers(room));
  const HeapTeam team = heap.world();
  bool moved = false;
  const std::string said = error_of([&] {
    run_kernel(group, heap, [&](const HostOneSided& ranks) {
      auto* numbers = ranks.at<std::int32_t>(0);
      std::fill_n(numbers + read_from, whole, 7);
      const Numbers before(numbers, numbers + room);
      try {
        call(HostTeam(ranks, team.terms()), numbers + to, numbers + read_from);
      } catch (const Trap&) {
        moved = before != Numbers(numbers, numbers + room);
        throw;
      }
    });
  });
  require_that(said.find("the arrays of a team's call overlap: it reads ") != std::string::npos, said);
  require_that(!moved, "the numbers as they were");
  group.barrier();
}

TEST(HeapOverlap, KernelsStopBeforeAnythingHasMoved) {
  const std::pair<std::string, TeamCall> calls[] = {
      {"broadcast", [](auto& team, auto* to, auto* from) { team.broadcast(to, from, count, 1); }},
      {"all_gather", [](auto& team, auto* to, auto* from) { team.all_gather(to, from, count); }},
      {"all_to_all", [](auto& team, auto* to, auto* from) { team.all_to_all(to, from, count); }},
      {"reduce", [](auto& team, auto* to, auto* from) { team.reduce(to, from, count, one_sided::TeamOp::sum); }}};
  for (const auto& [name, call] : calls)
    for (const std::size_t to : {read_from - 1, read_from + count - 1})
      EXPECT_EQ(problems_of(2, [&, &call = call](Group& group, Place place) { kernel_stops(group, place, call, to); }),
                "")
          << name << " to " << to;
}

TEST(HeapOverlap, EveryCallIsRightOrRefused) { EXPECT_EQ(problems_of(members, every_overlap), ""); }

}  // namespace
}  // namespace waywiser::overlapping::heaps
