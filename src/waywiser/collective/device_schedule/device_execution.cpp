#include "waywiser/collective/device_schedule/device_execution.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <new>
#include <utility>

#include "waywiser/collective/device_schedule/program_kernel.hpp"
#include "waywiser/collective/fused/rare_numbers.hpp"
#include "waywiser/collective/on_stream/failure.hpp"
#include "waywiser/kernels/block/tag.hpp"
#include "waywiser/kernels/clear.hpp"

namespace waywiser {
namespace {

using program::Instruction;
using program::ProgramState;

constexpr Seconds upload_patience = 60;

constexpr Bytes in_slots(Bytes bytes) { return (bytes + 255) / 256 * 256; }

bool is_callers(const ScheduleArray& array) { return array.use <= ArrayUse::taken; }
Bytes bytes_of_array(const ScheduleArray& array) { return array.count * bytes_of(array.type); }

// The order of the data that the kernel reads.
struct ProgramPlaces {
  Bytes instructions = 0, rounds = 0, offsets = 0, end = 0;

  explicit ProgramPlaces(const Schedule& schedule) {
    instructions = in_slots(sizeof(ProgramState));
    rounds = instructions + in_slots(schedule.steps.size() * sizeof(Instruction));
    offsets = rounds + in_slots((schedule.steps.size() + 1) * sizeof(std::uint32_t));
    end = offsets + in_slots(program::offsets_of(schedule) * sizeof(std::uint64_t));
  }
};

}  // namespace

DeviceExecution::DeviceExecution(Platform& platform, Place gpu, std::shared_ptr<const Schedule> schedule,
                                 std::span<const Elements> arrays, ReduceOp op, ProgramAlgorithms algorithms)
    : platform_(platform),
      gpu_(gpu),
      schedule_(std::move(schedule)),
      arrays_(arrays.begin(), arrays.end()),
      op_(op),
      algorithms_(std::move(algorithms)) {
  check(arrays);
  allocate(platform);
  set_direct({}, {});
}

program::DirectMessages DeviceExecution::direct_messages() const {
  return program::direct_messages(*schedule_, DataType::uint8, regions(), algorithms_);
}

void DeviceExecution::set_direct(std::vector<program::View> direct, std::string why_slots) {
  direct_ = std::move(direct);
  why_slots_ = std::move(why_slots);
  std::vector<bool> is_direct;
  for (const program::View& view : direct_) is_direct.push_back(view.data != nullptr);
  messages_ = program::MessagePlans::of(*schedule_, DataType::uint8, is_direct, algorithms_);
  plan_ = program::LandingPlan::of(*schedule_, DataType::uint8, messages_);
}

void DeviceExecution::check(std::span<const Elements> arrays) const {
  const auto refuse = [](const std::string& why) { throw Error(ErrorKind::invalid_input, "a schedule: " + why); };
  if (const auto why = why_invalid(*schedule_)) refuse(*why);
  if (schedule_->ranks > static_cast<int>(block::max_ranks)) refuse("kernels are for up to 8 ranks");
  if (schedule_->input_count + schedule_->output_count + schedule_->scratch_count != 0)
    refuse("one that is prepared has arrays only, no input, output or scratch");
  if (op_ == ReduceOp::avg || !is_arithmetic(op_)) refuse(std::string(name(op_)) + " on GPUs is for collectives");
  for (const Step& step : schedule_->steps) {
    const bool reduces = step.kind == StepKind::reduce || step.kind == StepKind::receive_reduce;
    const DataType type = reduces ? schedule_->arrays[step.destination.array].type : DataType::uint8;
    check_reduction(type, op_);
    if (!fused::fits_into_packets(type, op_))
      refuse(std::string(name(op_)) + " of " + std::string(name(type)) + " on a GPU is for collectives");
  }
  std::size_t next = 0;
  for (const ScheduleArray& array : schedule_->arrays) {
    if (!is_callers(array)) continue;
    if (next == arrays.size()) refuse("not as many arrays as it has");
    const Elements& given = arrays[next++];
    if (given.type != array.type || given.region.bytes < bytes_of_array(array))
      refuse("array " + std::to_string(next - 1) + " has " + std::to_string(given.count()) + " " +
             std::string(name(given.type)) + " instead of " + std::to_string(array.count) + " " +
             std::string(name(array.type)));
    if (given.region.bytes != 0 && given.region.place != gpu_)
      refuse("array " + std::to_string(next - 1) + " is of " + text(given.region.place) + ", not of " + text(gpu_));
  }
  if (next != arrays.size()) refuse("more arrays than it has");
}

void DeviceExecution::allocate(Platform& platform) {
  Bytes own = 0;
  for (const ScheduleArray& array : schedule_->arrays)
    if (!is_callers(array)) own += in_slots(bytes_of_array(array));
  if (own != 0) own_ = platform.allocate(gpu_, own, Allocation::gpu);
  program_ = platform.allocate(gpu_, ProgramPlaces(*schedule_).end, Allocation::gpu);
  notice_ = platform.allocate(platform.nearest_host(gpu_.index), sizeof(block::Notice), Allocation::pinned);
  new (notice_.region().data) block::Notice();
  launches_ = platform.create_launch_cache(gpu_);
}

void DeviceExecution::set_landing(Region landing, Stream& stream) {
  landing_ = landing;
  clear(stream, landing_);
  clear(stream, program_.region().slice(0, sizeof(ProgramState)));
}

// The memory of all arrays of the schedule.
std::vector<Region> DeviceExecution::regions() const {
  std::vector<Region> all;
  std::size_t next = 0;
  Bytes own = 0;
  for (const ScheduleArray& array : schedule_->arrays) {
    const Bytes bytes = bytes_of_array(array);
    const Region region = is_callers(array) ? arrays_[next++].region : own_.region().slice(own, bytes);
    if (!is_callers(array)) own += in_slots(bytes);
    all.push_back(region.slice(0, bytes));
  }
  return all;
}

program::Addresses DeviceExecution::addresses(std::span<const Region> landings, Stream& stream) const {
  program::Addresses addresses;
  addresses.direct = direct_;
  for (const Region& array : regions()) addresses.arrays.push_back(array.bytes == 0 ? nullptr : stream.reach(array));
  for (const Region& landing : landings) addresses.landing.push_back(stream.reach(landing));
  addresses.offsets =
      reinterpret_cast<const std::uint64_t*>(stream.reach(program_.region()) + ProgramPlaces(*schedule_).offsets);
  return addresses;
}

void DeviceExecution::connect(std::span<const Region> landings, std::span<const program::LandingPlan> plans,
                              Stream& stream, int ranks_on_a_gpu) {
  if (const auto why = program::why_unlike(plans)) throw Error(ErrorKind::invalid_input, *why);
  const program::Addresses addresses = this->addresses(landings, stream);
  const int multiprocessors = std::max(platform_.multiprocessors(gpu_.index) / ranks_on_a_gpu, 1);
  const program::Translation translation =
      program::translate(*schedule_, DataType::uint8, op_, addresses, messages_, plans, multiprocessors);
  overlaps_ = ranks_on_a_gpu == 1;
  upload(translation, stream);
  const ProgramPlaces places(*schedule_);
  const auto me = static_cast<std::size_t>(schedule_->rank);
  std::byte* base = stream.reach(program_.region());
  terms_.state = reinterpret_cast<ProgramState*>(base);
  terms_.instructions = reinterpret_cast<const Instruction*>(base + places.instructions);
  terms_.rounds = reinterpret_cast<const std::uint32_t*>(base + places.rounds);
  terms_.round_count = static_cast<std::uint32_t>(translation.rounds.size() - 1);
  terms_.instruction_count = static_cast<std::uint32_t>(translation.instructions.size());
  terms_.rank = static_cast<std::uint32_t>(me);
  terms_.blocks = translation.blocks;
  terms_.form = translation.form;
  terms_.gives_to = translation.gives_to;
  terms_.notice = reinterpret_cast<block::Notice*>(stream.reach(notice_.region().slice(0, sizeof(block::Notice))));
  terms_.begun = reinterpret_cast<const std::uint64_t*>(addresses.landing[me]);
  for (std::size_t peer = 0; peer < landings.size(); ++peer)
    if ((translation.takes_from >> peer & 1) != 0)
      terms_.tell[peer] = reinterpret_cast<std::uint64_t*>(addresses.landing[peer]) + me;
  terms_.signature = block::signature_of(1);
}

void DeviceExecution::upload(const program::Translation& translation, Stream& stream) {
  const ProgramPlaces places(*schedule_);
  const Bytes bytes = places.end - places.instructions;
  const Memory staging = platform_.allocate(platform_.nearest_host(gpu_.index), bytes, Allocation::pinned);
  const auto put = [&](Bytes at, const auto& values) {
    if (!values.empty())
      std::memcpy(staging.region().data + at - places.instructions, values.data(),
                  std::as_bytes(std::span(values)).size());
  };
  put(places.instructions, translation.instructions);
  put(places.rounds, translation.rounds);
  put(places.offsets, translation.offsets);
  stream.copy(program_.region().slice(places.instructions, bytes), staging.region().slice(0, bytes));
  stream.synchronize(Deadline::in(upload_patience));
}

std::string DeviceExecution::explain() const {
  std::map<std::string, int> given, taken;
  for (std::size_t i = 0; i < schedule_->steps.size(); ++i) {
    const StepKind kind = schedule_->steps[i].kind;
    if (receives(kind)) ++taken[program::text(messages_.of_steps[i])];
    if (sends(kind)) ++given[program::text(messages_.of_steps[i])];
  }
  std::string text = "one kernel of " + std::to_string(terms_.blocks) + " blocks";
  const auto add = [&](const char* verb, const std::map<std::string, int>& messages) {
    const char* before = verb;
    for (const auto& [algorithm, count] : messages)
      text += std::exchange(before, ", ") + std::to_string(count) + " by " + algorithm;
  };
  add("; gives ", given);
  add("; takes ", taken);
  return text;
}

void DeviceExecution::enqueue(Stream& stream, Seconds deadline) {
  if (terms_.instructions == nullptr) throw Error(ErrorKind::invalid_input, "a schedule is started before connect()");
  if (terms_.instruction_count == 0) return;  // this rank has nothing to do, and no other rank waits for it
  deadline_ = deadline;
  program::ProgramArguments terms = terms_;
  terms.failed = on_stream::kept_word(notice());
  terms.deadline_ns = static_cast<std::uint64_t>(deadline * 1e9);
  Kernel kernel{1, 1, {}, {}};
  if (stream.native() != nullptr)
    kernel.cuda = program::cuda_launcher(launches_.get(), terms, overlaps_);
  else
    kernel.body = [=](const ThreadContext&) { program::run_on_host(terms); };
  stream.launch(kernel);
}

block::Notice& DeviceExecution::notice() const { return *reinterpret_cast<block::Notice*>(notice_.region().data); }

std::optional<Error> DeviceExecution::failure(const std::string& stopped, std::span<const int> in_job) const {
  const auto failed = on_stream::failure_in(notice());
  if (!failed) return {};
  const std::string me = on_stream::rank_text(schedule_->rank, in_job),
                    peer = on_stream::rank_text(failed->peer, in_job),
                    start = "start #" + std::to_string(failed->number) + " of a prepared " +
                            std::string(schedule_->algorithm);
  if (failed->reason == block::Reason::stopped)
    return Error(ErrorKind::io, me + " has given up " + start + " while it waited for " + peer +
                                    (stopped.empty() ? "" : ": " + stopped));
  return Error(ErrorKind::timeout,
               me + ": " + peer + " did not come within " + format_seconds(deadline_) + " in " + start);
}

void DeviceExecution::keep_context(std::uint32_t* word) noexcept { on_stream::keep_context(notice(), word); }

std::vector<Region> DeviceExecution::outputs() const {
  std::vector<bool> written(schedule_->arrays.size());
  for (const Step& step : schedule_->steps)
    if (step.kind != StepKind::send && step.kind != StepKind::put && step.kind != StepKind::signal)
      written[step.destination.array] = true;
  std::vector<Region> all = regions();
  for (std::size_t array = 0; array < all.size(); ++array)
    if (!written[array] || !is_callers(schedule_->arrays[array])) all[array].bytes = 0;
  return all;
}

void DeviceExecution::stop() noexcept { on_stream::stop(notice()); }

}  // namespace waywiser
