#include "waywiser/collective/device_schedule/direct_messages.hpp"

#include <algorithm>
#include <array>
#include <string>

#include "waywiser/comm/schedule_check.hpp"
#include "waywiser/policy/defaults.hpp"

namespace waywiser::program {
namespace {

bool touches(const Step& step, const Region& memory, std::span<const Region> arrays) {
  const auto is_in = [&](const Block& block) {
    return block.count != 0 && block.area == Area::array && overlap(arrays[block.array], memory);
  };
  return is_in(step.source) || is_in(step.destination);
}

// Empty: it can be direct. Every run is a store of its own on the way to another GPU: short ones travel packed.
std::string why_not_direct(const Schedule& schedule, const Step& step, std::span<const Region> arrays,
                           std::uint64_t size) {
  const Block& block = step.destination;
  if (step.kind == StepKind::receive_reduce) return "it is reduced with an array";
  if (block.area != Area::array) return "it is no part of an array";
  if (block.layout != 0 && !schedule.layouts[block.layout - 1].indices.empty()) return "its elements are in a list";
  if (block.layout != 0)
    if (const std::uint64_t run = layout_of(schedule, block, size).run; run < defaults::program_direct_run)
      return "its elements lie apart in runs of " + std::to_string(run) + " bytes";
  const bool used = std::ranges::any_of(schedule.steps, [&](const Step& other) {
    return other.round < step.round && touches(other, arrays[block.array], arrays);
  });
  return used ? "an earlier round uses its array" : "";
}

}  // namespace

DirectMessages direct_messages(const Schedule& schedule, DataType type_of_call, std::span<const Region> arrays,
                               const ProgramAlgorithms& algorithms) {
  DirectMessages found;
  std::array<std::uint32_t, block::max_ranks> received{};
  for (std::size_t i = 0; i < schedule.steps.size(); ++i) {
    const Step& step = schedule.steps[i];
    if (!receives(step.kind)) continue;
    const std::uint32_t message = received[static_cast<std::size_t>(step.peer)]++;
    const Block& block = step.destination;
    const std::uint64_t size = block.count == 0 ? 0 : bytes_of_element(schedule, block, type_of_call);
    const std::uint64_t bytes = block.count * size;
    const ProgramAlgorithm algorithm = algorithms.of(bytes);
    if (bytes == 0 || (is_flagged(algorithm.kind) && !(step.kind == StepKind::wait && bytes > defaults::program_ll)))
      continue;
    const std::string why_not = algorithm.kind == ProgramAlgorithm::Kind::bulk
                                    ? text(algorithm) + " is chosen for " + std::to_string(bytes) + " bytes"
                                    : why_not_direct(schedule, step, arrays, size);
    if (why_not.empty())
      found.all.push_back({i, static_cast<std::uint32_t>(step.peer), message, block.array, bytes, block.offset * size,
                           layout_of(schedule, block, size)});
    else if (found.why_slots.empty())
      found.why_slots = "a message from rank " + std::to_string(step.peer) + ": " + why_not;
  }
  return found;
}

std::optional<std::size_t> storing_step(const Schedule& schedule, int receiver, std::uint32_t message) {
  const std::vector<const Step*> puts = puts_of_signals(schedule);
  for (std::size_t i = 0; i < schedule.steps.size(); ++i) {
    const Step& step = schedule.steps[i];
    if (!sends(step.kind) || step.peer != receiver || message-- != 0) continue;
    if (step.kind == StepKind::send) return i;
    if (puts[i] == nullptr) return {};
    return static_cast<std::size_t>(puts[i] - schedule.steps.data());
  }
  return {};
}

View layout_of(const Schedule& schedule, const Block& block, std::uint64_t size) {
  View view;
  view.run = block.count * size;
  if (block.layout == 0) return view;
  const BlockLayout& layout = schedule.layouts[block.layout - 1];
  view.run = layout.run * size;
  for (std::size_t i = 0; i < 3; ++i) view.strides[i] = layout.box[i].stride * size;
  for (std::size_t i = 0; i < 2; ++i) view.counts[i] = layout.box[i + 1].count;
  return view;
}

std::optional<std::uint64_t> extent_of(const View& view, std::uint64_t bytes) {
  constexpr std::uint64_t most = std::uint64_t{1} << 40;
  const std::uint64_t runs = view.run == 0 || bytes % view.run != 0 ? 0 : bytes / view.run;
  if (bytes > most || runs == 0 || view.counts[0] == 0 || view.counts[1] == 0) return {};
  if (view.counts[0] > runs || view.counts[1] > runs || runs % (view.counts[0] * view.counts[1]) != 0) return {};
  const std::uint64_t counts[] = {runs / (view.counts[0] * view.counts[1]), view.counts[0], view.counts[1]};
  std::uint64_t extent = view.run;
  for (std::size_t i = 0; i < 3; ++i) {
    if (counts[i] > 1 && view.strides[i] > most / counts[i]) return {};
    extent += (counts[i] - 1) * view.strides[i];
  }
  return extent;
}

}  // namespace waywiser::program
