#include "waywiser/halo/halo_exchange.hpp"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "waywiser/base/error.hpp"
#include "waywiser/base/fingerprint_hash.hpp"
#include "waywiser/comm/bootstrap/introduction.hpp"
#include "waywiser/comm/session/call_arrays.hpp"
#include "waywiser/device/peer_switch.hpp"
#include "waywiser/device/platform.hpp"
#include "waywiser/group/failure_at_all.hpp"
#include "waywiser/halo/agreement.hpp"
#include "waywiser/halo/halo_state.hpp"

namespace waywiser {
namespace {

constexpr std::uint64_t says_host = 0, says_gpu = 1, says_virtual_gpu = 2;

[[noreturn]] void refuse_fields(const std::string& why) {
  throw Error(ErrorKind::invalid_input, "a halo exchange: " + why);
}

HaloField field_of(const HaloArray& array) { return {array.values.type, array.components, array.planar}; }

void check_fields(const HaloPartition& partition, std::span<const HaloArray> fields) {
  const Region* first = nullptr;
  std::vector<PartUse> uses;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const HaloArray& each = fields[i];
    if (each.components == 0) refuse_fields("field " + std::to_string(i) + " has no components");
    if (each.values.count() / each.components != partition.cells || each.values.count() % each.components != 0)
      refuse_fields("field " + std::to_string(i) + " has " + std::to_string(each.values.count()) + " elements, not " +
                    std::to_string(each.components) + " for each of " + std::to_string(partition.cells) + " cells");
    const Region& region = each.values.region;
    if (region.bytes == 0) continue;
    if (first != nullptr && first->place.is_gpu() != region.place.is_gpu())
      refuse_fields("some fields are in host memory and some on a GPU");
    if (first != nullptr && region.place.is_gpu() && first->place != region.place)
      refuse_fields("fields are on " + text(first->place) + " and " + text(region.place));
    if (first == nullptr) first = &region;
    uses.push_back({region, i, true});
  }
  if (const auto found = find_overlap(uses)) {
    const auto [first_field, other] = std::minmax(found->first.part, found->second.part);
    refuse_fields("fields " + std::to_string(first_field) + " and " + std::to_string(other) + " overlap");
  }
}

// Collective.
void require_same_fields(Group& group, std::span<const HaloArray> fields) {
  const AgreedValue number{fields.size(), "number of fields in a halo exchange"};
  require_equal(group, {&number, 1});
  std::vector<AgreedValue> all;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const HaloArray& each = fields[i];
    const std::string of = " of field " + std::to_string(i) + " in a halo exchange";
    all.push_back({static_cast<std::uint64_t>(each.values.type), "type" + of});
    all.push_back({each.components, "number of components" + of});
    all.push_back({std::uint64_t{each.planar && each.components != 1}, "place of the components" + of});
  }
  if (!all.empty()) require_equal(group, all);
}

// The place of the first field with cells; if none has any, of the first field.
Place place_of(std::span<const HaloArray> fields) {
  if (fields.empty()) return host(0);
  const auto found = std::ranges::find_if(fields, [](const HaloArray& each) { return each.values.region.bytes != 0; });
  return (found == fields.end() ? fields.front() : *found).values.region.place;
}

std::string percent(Seconds part, Seconds whole) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f %%", 100 * part / whole);
  return text;
}

std::string words_of(const HaloTimes& times) {
  if (!(times.elapsed > 0)) return {};
  return "\nshare of time: " + percent(times.inside, times.elapsed) + " of " + format_seconds(times.elapsed) +
         " in start() and finish(), " + percent(times.overlapped, times.elapsed) + " between them";
}

// Equal for two ranks on one GPU.
std::uint64_t gpu_number(const Platform& platform, Place place) {
  FingerprintHash hash;
  hash.add(machine_id());
  hash.add(platform.identity(place.index));
  return std::stoull(hash.hexadecimal(), nullptr, 16);
}

// 0 does not count.
bool any_twice(std::vector<std::uint64_t> numbers) {
  std::erase(numbers, 0);
  std::ranges::sort(numbers);
  return std::ranges::adjacent_find(numbers) != numbers.end();
}

std::vector<Elements> byte_elements(std::span<const HaloArray> fields) {
  std::vector<Elements> bytes;
  for (const HaloArray& each : fields) bytes.emplace_back(each.values.region, DataType::uint8);
  return bytes;
}

}  // namespace

void HaloExchange::State::set_fields(std::span<const HaloArray> wanted) {
  check_is_over("the fields are changed");
  throw_at_all(group, failure_of([&] {
                 check_fields(partition, wanted);
                 check_partition(partition);
                 if (partition.rank != group.rank() || partition.ranks != group.size())
                   refuse_fields("the partition is for rank " + std::to_string(partition.rank) + " of " +
                                 std::to_string(partition.ranks));
               }));
  require_same_grid(group, partition.grid);
  require_same_fields(group, wanted);
  std::vector<HaloField> fields;
  std::ranges::transform(wanted, std::back_inserter(fields), field_of);
  HaloBoundary made = boundary_of(partition, fields);
  require_matching(group, halo_schedule(HaloVariant::per_neighbor, made));
  const bool gpu = place_of(wanted).is_gpu();
  const std::vector<std::uint64_t> places =
      said_by_all(group, !gpu                                           ? says_host
                         : group.platform()->backend() == "virtual_gpu" ? says_virtual_gpu
                                                                        : says_gpu);
  adopt(choice, nullptr);
  tuning.reset();
  boundary = std::move(made);
  arrays = byte_elements(wanted);
  on_gpu = gpu;
  any_on_virtual_gpu = std::ranges::count(places, says_virtual_gpu) != 0;
  any_on_gpu = any_on_virtual_gpu || std::ranges::count(places, says_gpu) != 0;
  const auto on_host = std::ranges::find(places, says_host);
  host_rank = on_host == places.end() ? -1 : static_cast<int>(on_host - places.begin());
  share_gpu = any_twice(said_by_all(group, gpu ? gpu_number(*group.platform(), place_of(wanted)) : 0));
  place = gpu ? std::string(group.platform()->backend()) + " " + text(place_of(wanted)) : "host";
  if (any_on_gpu && share_gpu) place += ", ranks share GPUs";
  if (any_on_gpu && is_peer_access_off()) place += ", " + peer_access_is_off;
}

void HaloExchange::State::use_default() {
  const HaloChoice direct = all_by(HaloVariant::direct), packed = all_by(HaloVariant::packed);
  if (share_gpu) {
    adopt(packed, prepared(packed));
    reason =
        "the default where ranks share a GPU: their kernels run in turns, and would wait for each other; not measured";
    return;
  }
  try {
    adopt(direct, prepared(direct));
    reason = "the default where kernels reach the neighbours' memory; not measured";
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::unavailable) throw;
    reason = "the default where direct is unavailable (" + std::string(error.what()) + "); not measured";
    adopt(packed, prepared(packed));
  }
}

void HaloExchange::State::check_is_over(const char* what) const {
  if (under_way) throw Error(ErrorKind::invalid_input, std::string("a halo exchange: ") + what + " before finish()");
}

void HaloExchange::State::start(Stream* stream) {
  const auto held = alone();
  check_is_over("it is started again");
  if (!run) refuse_fields("no variant could be prepared");
  const Seconds called = now_seconds();
  run->start(stream);
  under_way = true;
  started = now_seconds();
  if (times.elapsed == 0) first_start = called;
  times.inside += started - called;
}

void HaloExchange::State::finish() {
  const auto held = alone();
  if (!under_way) refuse_fields("finish() without start()");
  under_way = false;
  const Seconds called = now_seconds();
  times.overlapped += called - started;
  run->finish();
  const Seconds finished = now_seconds();
  times.inside += finished - called;
  times.elapsed = finished - first_start;
}

HaloExchange::State& HaloExchange::held() const {
  if (!state_) throw Error(ErrorKind::invalid_input, "this HaloExchange was moved from: its fields are in another one");
  return *state_;
}

HaloExchange::HaloExchange(Group& group, HaloPartition partition, std::span<const HaloArray> fields)
    : state_(std::make_unique<State>(group, std::move(partition))) {
  const auto alone = held().alone();
  set_fields(fields);
}
HaloExchange::HaloExchange(HaloExchange&& other) noexcept = default;
HaloExchange& HaloExchange::operator=(HaloExchange&& other) noexcept = default;
HaloExchange::~HaloExchange() = default;

void HaloExchange::start() { held().start(nullptr); }
void HaloExchange::start(Stream& stream) { held().start(&stream); }
void HaloExchange::finish() { held().finish(); }
void HaloExchange::exchange() {
  start();
  finish();
}
void HaloExchange::exchange(Stream& stream) {
  start(stream);
  finish();
}

void HaloExchange::set_fields(std::span<const HaloArray> fields) {
  State& state = held();
  const auto alone = state.alone();
  state.set_fields(fields);
  const bool again = state.tuned_for > 0 && !state.kinds_of_all().empty();
  again ? state.tune(state.tuned_for, state.tuned_file) : state.use_default();
}

HaloVariant HaloExchange::variant() const { return held().choice.variant; }

void HaloExchange::use(HaloVariant variant) {
  const auto alone = held().alone();
  held().require_same_use(variant);
  held().use(held().all_by(variant));
}

void HaloExchange::use(std::span<const HaloVariant> of_sides) {
  const auto alone = held().alone();
  held().require_same_use({});
  held().use(held().agreed({of_sides.begin(), of_sides.end()}));
}

std::string HaloExchange::explain() const {
  const auto alone = held().alone();
  const std::string text = held().tuning ? waywiser::explain(*held().tuning)
                                         : std::string(name(held().choice.variant)) + ": " + held().reason;
  const std::string sides = held().choice.variant == HaloVariant::mixed ? held().words_of_sides() : "";
  const std::string kernels = held().run ? held().run->explain() : "";
  return text + sides + (kernels.empty() ? "" : "\n" + kernels) + words_of(held().times);
}

HaloCounts HaloExchange::counts(HaloVariant variant) const {
  const auto alone = held().alone();
  HaloCounts all = held().counts[static_cast<std::size_t>(variant)];
  if (variant == held().choice.variant && held().run) all += held().run->counts();
  return all;
}

HaloCounts HaloExchange::counts() const {
  HaloCounts all;
  for (std::size_t i = 0; i < held().counts.size(); ++i) all += counts(static_cast<HaloVariant>(i));
  return all;
}

HaloTimes HaloExchange::times() const {
  const auto alone = held().alone();
  return held().times;
}

void HaloExchange::keep(std::shared_ptr<void> owner) {
  const auto alone = held().alone();
  held().owner = std::move(owner);
  if (held().run) held().run->keep(held().owner);
}

}  // namespace waywiser
