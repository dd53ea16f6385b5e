#include "waywiser/bench/coalescing.hpp"

#include <algorithm>
#include <cstring>

#include "waywiser/base/error.hpp"
#include "waywiser/collective/device_schedule/local_program.hpp"
#include "waywiser/measure/contest.hpp"

namespace waywiser {
namespace {

constexpr Seconds copy_patience = 60;
constexpr TurnLength turn{.aim = 100e-6, .most_repetitions = 100};
constexpr int least_rounds = 5, most_rounds = 1000;
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

// The first contender copies the blocks one by one, the second gathers them.
class CoalescedCopies::Race final : public Contest {
 public:
  // `program` gathers on a GPU; nothing on the host.
  Race(CoalescedCopies& copies, Bytes block, int blocks, LocalProgram* program)
      : Contest(turn, copies.seed_), copies_(copies), block_(block), blocks_(blocks), program_(program) {
    enter();
    enter();
  }

 private:
  std::vector<Sample> take(std::size_t which, int repetitions) override {
    const auto copy = [&] {
      if (which == 0) return copies_.copy_apart(block_, blocks_);
      copies_.copy_gathered(block_, blocks_, program_);
    };
    return {{.seconds = copies_.sample(block_, blocks_, repetitions, copy)}};
  }

  CoalescedCopies& copies_;
  const Bytes block_;
  const int blocks_;
  LocalProgram* const program_;
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

void CoalescedCopies::copy_gathered(Bytes block, int blocks, LocalProgram* program) {
  const Bytes all = block * static_cast<Bytes>(blocks);
  if (program != nullptr)
    program->execution().enqueue(*stream_, copy_patience);
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
  std::unique_ptr<LocalProgram> program;
  if (const Region region = slice(source_, 0, spread * block * static_cast<Bytes>(blocks)); region.place.is_gpu()) {
    const Elements arrays[] = {{region, DataType::uint8},
                               {slice(gathered_, 0, block * static_cast<Bytes>(blocks)), DataType::uint8}};
    program =
        std::make_unique<LocalProgram>(platform_, region.place, gathering_schedule(block, blocks), arrays, *stream_);
  }
  Race race(*this, block, blocks, program.get());
  race.run({.least = least_rounds,
            .most = most_rounds,
            .precision = 0,
            .share = seconds - (now_seconds() - begun),
            .hopeless = 0},
           [] { return true; });
  const std::vector<double>&apart = race.contenders()[0].samples, &gathered = race.contenders()[1].samples;
  CoalescingTimes times{summarize(apart), summarize(gathered), paired_ratio(apart, gathered)};
  for (double* each : {&times.change.median, &times.change.interval.low, &times.change.interval.high, &times.change.p50,
                       &times.change.p99})
    *each = 100 * (*each - 1);
  return times;
}

}  // namespace waywiser
