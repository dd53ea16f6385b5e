#include "tests/collective/made_up_exchange.hpp"

#include <algorithm>
#include <numeric>

namespace waywiser {
namespace {

std::vector<std::size_t> divisors(std::size_t count) {
  std::vector<std::size_t> all;
  for (std::size_t i = 1; i <= count; ++i)
    if (count % i == 0) all.push_back(i);
  return all;
}

}  // namespace

MadeUpExchange::MadeUpExchange(int size, std::uint64_t seed, std::size_t most)
    : ranks(size), of(static_cast<std::size_t>(size)), generator_(seed) {
  const auto any = [&](std::size_t end) { return static_cast<std::size_t>(generator_() % end); };
  for (int from = 0; from < size; ++from)
    for (int to = 0; to < size; ++to)
      for (std::size_t message = 0, messages = any(3); message < messages; ++message) {
        const auto type = static_cast<DataType>(any(data_types));
        const std::size_t count = any(5) == 0 ? 0 : 1 + any(any(4) == 0 ? most : 60);
        const int tag = static_cast<int>(message);
        of[static_cast<std::size_t>(from)].push_back({to, part(type, count), {}, tag, 9});
        of[static_cast<std::size_t>(to)].push_back({from, {}, part(type, count), 9, tag});
      }
  for (auto& each : of) std::ranges::shuffle(each, generator_);
}

ArrayPart MadeUpExchange::part(DataType type, std::size_t count) {
  const auto any = [&](std::size_t end) { return static_cast<std::size_t>(generator_() % end); };
  ArrayPart part{type, count + any(7), 0, count, {}, false};
  part.offset = part.array_count - count;
  if (count == 0 || any(3) == 0) return part;
  const std::vector<std::size_t> runs = divisors(count);
  part.apart = true;
  part.layout.run = runs[any(runs.size())];
  std::size_t left = count / part.layout.run, stride = part.layout.run;
  if (any(2) == 0 && left < 1000) {
    part.layout.indices.resize(left);
    for (std::size_t i = 0; i < left; ++i) part.layout.indices[i] = i * (part.layout.run + 1);
    std::ranges::shuffle(part.layout.indices, generator_);
    stride = left * (part.layout.run + 1);
  } else {
    for (std::size_t dimension = 3; dimension-- > 0;) {
      const std::vector<std::size_t> counts = divisors(left);
      part.layout.box[dimension] = {dimension == 0 ? left : counts[any(counts.size())], stride + any(3)};
      left /= part.layout.box[dimension].count;
      stride = part.layout.box[dimension].stride * part.layout.box[dimension].count;
    }
  }
  part.array_count = part.offset + stride;
  return part;
}

std::vector<Schedule> MadeUpExchange::schedules() const {
  std::vector<Schedule> all;
  for (int rank = 0; rank < ranks; ++rank)
    all.push_back(collective::neighbor_exchange::of_arrays(rank, ranks, of[static_cast<std::size_t>(rank)]));
  return all;
}

std::vector<std::vector<std::byte>> made_up_arrays(const Schedule& schedule) {
  std::vector<std::vector<std::byte>> arrays;
  for (const ScheduleArray& array : schedule.arrays) {
    std::vector<std::byte> bytes(array.count * bytes_of(array.type), std::byte{0x5a});
    for (std::size_t i = 0; array.use == ArrayUse::given && i < bytes.size(); ++i)
      bytes[i] =
          static_cast<std::byte>(static_cast<std::size_t>(schedule.rank) * 17 + arrays.size() * 5 + i * 3 + i / 255);
    arrays.push_back(std::move(bytes));
  }
  return arrays;
}

// Round 0: every second element is packed; 1: put; 2: signal; 3: wait; 4: unpacked into a list, backwards.
std::vector<Schedule> made_up_puts(int ranks, std::size_t count) {
  std::vector<Schedule> all;
  for (int rank = 0; rank < ranks; ++rank) {
    Schedule schedule{"puts", rank, ranks, 0, 0, 0, {}, {}, {}};
    const int next = (rank + 1) % ranks, previous = (rank + ranks - 1) % ranks;
    schedule.arrays = {{DataType::float32, 2 * count, ArrayUse::given},
                       {DataType::float32, count, ArrayUse::scratch},
                       {DataType::float32, count, ArrayUse::landing},
                       {DataType::float32, count, ArrayUse::taken}};
    BlockLayout second{1, {}, {}}, backwards{1, {}, std::vector<std::size_t>(count)};
    second.box[2] = {count, 2};
    std::iota(backwards.indices.rbegin(), backwards.indices.rend(), std::size_t{0});
    schedule.layouts = {second, backwards};
    const Block packed{Area::array, 0, count, 1, 0}, landed{Area::array, 0, count, 2, 0};
    schedule.steps = {{StepKind::pack, 0, -1, packed, {Area::array, 1, count, 0, 1}},
                      {StepKind::signal, 0, previous, {}, {}},
                      {StepKind::wait, 0, next, {}, {}},
                      {StepKind::put, 1, next, {}, packed},
                      {StepKind::signal, 2, next, {}, {}},
                      {StepKind::wait, 3, previous, landed, {}},
                      {StepKind::unpack, 4, -1, {Area::array, 0, count, 3, 2}, landed}};
    all.push_back(std::move(schedule));
  }
  return all;
}

}  // namespace waywiser
