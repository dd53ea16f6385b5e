#include "waywiser/bench/coalescing.hpp"

#include <algorithm>
#include <cstring>

#include "waywiser/base/error.hpp"
#include "waywiser/collective/device_schedule/local_program.hpp"

namespace waywiser {
namespace {

constexpr Seconds copy_patience = 60, sample_time = 100e-6;
constexpr int least_turns = 5, most_turns = 1000, most_calls_of_sample = 100;
constexpr Bytes spread = 2;  // a block begins where another one would have ended

Region slice(const BenchBuffer& buffer, Bytes offset, Bytes bytes) { return buffer.bytes(offset, bytes).region; }

Place first_gpu(Place source, Place destination) { return source.is_gpu() ? source : destination; }

Schedule gathering_schedule(Bytes block, int blocks) {
  const Bytes all = block * static_cast<Bytes>(blocks);
  Schedule schedule{"coalescing", 0, 1, 0, 0, 0, {}, {}, {}};
  schedule.arrays = {{DataType::uint8, spread * all, ArrayUse::given}, {DataType::uint8, all, ArrayUse::taken}};
  BlockLayout& layout = schedule.layouts.emplace_back();
  layout.run = block;
  layout.box[2] = {static_cast<std::size_t>(blocks), spread * block};
  schedule.steps.push_back({StepKind::pack, 0, -1, {Area::array, 0, all, 1, 0}, {Area::array, 0, all, 0, 1}});
  return schedule;
}

}  // namespace

// What gathers on a GPU; nothing on the host.
struct CoalescedCopies::Gathering {
  std::unique_ptr<LocalProgram> program;
};

CoalescedCopies::CoalescedCopies(Platform& platform, Place source, Place destination, Bytes largest)
    : platform_(platform),
      largest_(largest),
      source_(platform, source, spread * largest, Allocation::pinned),
      gathered_(platform, source, largest, Allocation::pinned),
      destination_(platform, destination, largest, Allocation::pinned) {
  if (source.is_gpu() && destination.is_gpu() && source != destination) {
    platform.set_peer_access(source.index, destination.index, true);
    platform.set_peer_access(destination.index, source.index, true);
  }
  stream_ = platform.open_stream(first_gpu(source, destination));
}

CoalescedCopies::~CoalescedCopies() = default;

void CoalescedCopies::copy_apart(Bytes block, int blocks) {
  for (Bytes i = 0; i < static_cast<Bytes>(blocks); ++i)
    stream_->copy(slice(destination_, i * block, block), slice(source_, spread * i * block, block));
}

void CoalescedCopies::copy_gathered(Bytes block, int blocks, Gathering& gathering) {
  const Bytes all = block * static_cast<Bytes>(blocks);
  if (gathering.program)
    gathering.program->execution().enqueue(*stream_, copy_patience);
  else
    for (Bytes i = 0; i < static_cast<Bytes>(blocks); ++i)
      std::memcpy(slice(gathered_, i * block, block).data, slice(source_, spread * i * block, block).data, block);
  stream_->copy(slice(destination_, 0, all), slice(gathered_, 0, all));
}

// Each call waits for its end, as an exchange does. The bytes differ from those of the sample before.
template <typename Copy>
Seconds CoalescedCopies::sample(Bytes block, int blocks, int calls, Copy copy) {
  ++seed_;
  const auto seed_of = [&](Bytes i) { return seed_ * 1000 + i; };
  for (Bytes i = 0; i < static_cast<Bytes>(blocks); ++i) source_.fill(spread * i * block, block, seed_of(i));
  const Seconds first = now_seconds();
  for (int call = 0; call < calls; ++call) {
    copy();
    stream_->synchronize(Deadline::in(copy_patience));
  }
  const Seconds seconds = (now_seconds() - first) / calls;
  for (Bytes i = 0; i < static_cast<Bytes>(blocks); ++i)
    destination_.check(i * block, block, seed_of(i), "coalescing: block " + std::to_string(i));
  return seconds;
}

CoalescingTimes CoalescedCopies::measure(Bytes block, int blocks, Seconds seconds) {
  if (block == 0 || blocks < 1 || block > largest_ / static_cast<Bytes>(blocks))
    throw Error(ErrorKind::invalid_input, "coalescing: " + std::to_string(blocks) + " blocks of " +
                                              format_bytes(block) + " bytes are none or above the limit");
  const Seconds begun = now_seconds();
  Gathering gathering;
  if (const Region region = slice(source_, 0, spread * block * static_cast<Bytes>(blocks)); region.place.is_gpu()) {
    const Elements arrays[] = {{region, DataType::uint8},
                               {slice(gathered_, 0, block * static_cast<Bytes>(blocks)), DataType::uint8}};
    gathering.program =
        std::make_unique<LocalProgram>(platform_, region.place, gathering_schedule(block, blocks), arrays, *stream_);
  }
  const auto one_by_one = [&] { copy_apart(block, blocks); };
  const auto at_once = [&] { copy_gathered(block, blocks, gathering); };
  const auto calls_of = [](Seconds once) {
    return static_cast<int>(std::clamp(sample_time / std::max(once, 1e-9), 1.0, 1.0 * most_calls_of_sample));
  };
  sample(block, blocks, 1, one_by_one);
  sample(block, blocks, 1, at_once);
  const int calls_apart = calls_of(sample(block, blocks, 1, one_by_one)),
            calls_gathered = calls_of(sample(block, blocks, 1, at_once));
  std::vector<double> apart, gathered;
  for (int i = 0; i < most_turns && (i < least_turns || now_seconds() - begun < seconds); ++i) {
    const bool first = i % 2 == 0;
    if (first) apart.push_back(sample(block, blocks, calls_apart, one_by_one));
    gathered.push_back(sample(block, blocks, calls_gathered, at_once));
    if (!first) apart.push_back(sample(block, blocks, calls_apart, one_by_one));
  }
  CoalescingTimes times{summarize(apart), summarize(gathered), paired_ratio(apart, gathered)};
  for (double* each : {&times.change.median, &times.change.interval.low, &times.change.interval.high, &times.change.p50,
                       &times.change.p99})
    *each = 100 * (*each - 1);
  return times;
}

}  // namespace waywiser
