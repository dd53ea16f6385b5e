#include "waywiser/halo/halo_exchange.hpp"

#include <algorithm>
#include <utility>

#include "waywiser/base/error.hpp"
#include "waywiser/device/platform.hpp"
#include "waywiser/halo/agreement.hpp"
#include "waywiser/halo/halo_state.hpp"

namespace waywiser {
namespace {

constexpr std::uint8_t says_host = 0, says_gpu = 1, says_virtual_gpu = 2;

[[noreturn]] void refuse_fields(const std::string& why) {
  throw Error(ErrorKind::invalid_input, "a halo exchange: " + why);
}

HaloField field_of(const HaloArray& array) { return {array.values.type, array.components, array.planar}; }

void check_fields(const HaloPartition& partition, std::span<const HaloArray> fields) {
  const Region* first = nullptr;
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
    for (std::size_t before = 0; before < i; ++before)
      if (overlap(fields[before].values.region, region))
        refuse_fields("fields " + std::to_string(before) + " and " + std::to_string(i) + " overlap");
  }
}

std::uint64_t digest_of(std::span<const HaloArray> fields) {
  std::uint64_t digest = fields.size() + 1;
  for (const HaloArray& each : fields)
    for (const std::uint64_t value : {static_cast<std::uint64_t>(each.values.type), std::uint64_t{each.components},
                                      std::uint64_t{each.planar && each.components != 1}})
      digest = (digest ^ value) * 0x9e3779b97f4a7c15u ^ digest >> 29;
  return digest;
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
  require_equal(group, digest_of(wanted), "fields in a halo exchange");
  std::vector<HaloField> fields;
  std::ranges::transform(wanted, std::back_inserter(fields), field_of);
  HaloBoundary made = boundary_of(partition, fields);
  require_matching(group, halo_schedule(HaloVariant::per_neighbor, made));
  const bool gpu = std::ranges::any_of(
      wanted, [](const HaloArray& each) { return each.values.region.bytes != 0 && each.values.region.place.is_gpu(); });
  const std::vector<std::uint8_t> places =
      said_by_all(group, !gpu                                           ? says_host
                         : group.platform()->backend() == "virtual_gpu" ? says_virtual_gpu
                                                                        : says_gpu);
  adopt(variant, nullptr);
  tuning.reset();
  boundary = std::move(made);
  arrays = byte_elements(wanted);
  on_gpu = gpu;
  any_on_virtual_gpu = std::ranges::count(places, says_virtual_gpu) != 0;
  any_on_gpu = any_on_virtual_gpu || std::ranges::count(places, says_gpu) != 0;
}

std::unique_ptr<HaloRun> HaloExchange::State::prepared(HaloVariant wanted) {
  if (is_direct(wanted) && !any_on_gpu)
    throw Error(ErrorKind::unavailable, "the fields are in host memory, which no kernel serves");
  std::unique_ptr<HaloRun> made;
  throw_at_all(group, failure_of([&] {
                 made = on_gpu && !is_direct(wanted) ? staged_run(group, wanted, boundary, arrays)
                                                     : scheduled_run(group, halo_schedule(wanted, boundary), arrays);
               }));
  made->prepare();
  made->keep(owner);
  return made;
}

void HaloExchange::State::adopt(HaloVariant taken, std::unique_ptr<HaloRun> made) {
  if (run) counts[static_cast<std::size_t>(variant)] += run->counts();
  variant = taken;
  run = std::move(made);
}

void HaloExchange::State::use_default() {
  try {
    adopt(HaloVariant::direct, prepared(HaloVariant::direct));
    reason = "the default where kernels reach the neighbours' memory; not measured";
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::unavailable) throw;
    reason = "the default where direct is unavailable (" + std::string(error.what()) + "); not measured";
    adopt(HaloVariant::packed, prepared(HaloVariant::packed));
  }
}

void HaloExchange::State::check_is_over(const char* what) const {
  if (under_way) throw Error(ErrorKind::invalid_input, std::string("a halo exchange: ") + what + " before finish()");
}

void HaloExchange::State::start(Stream* stream) {
  check_is_over("it is started again");
  if (!run) refuse_fields("no variant could be prepared");
  run->start(stream);
  under_way = true;
}

void HaloExchange::State::finish() {
  if (!under_way) refuse_fields("finish() without start()");
  under_way = false;
  run->finish();
}

HaloExchange::HaloExchange(Group& group, HaloPartition partition, std::span<const HaloArray> fields)
    : state_(std::make_unique<State>(group, std::move(partition))) {
  set_fields(fields);
}
HaloExchange::HaloExchange(HaloExchange&& other) noexcept = default;
HaloExchange& HaloExchange::operator=(HaloExchange&& other) noexcept = default;
HaloExchange::~HaloExchange() = default;

void HaloExchange::start() { state_->start(nullptr); }
void HaloExchange::start(Stream& stream) { state_->start(&stream); }
void HaloExchange::finish() { state_->finish(); }
void HaloExchange::exchange() {
  start();
  finish();
}
void HaloExchange::exchange(Stream& stream) {
  start(stream);
  finish();
}

void HaloExchange::set_fields(std::span<const HaloArray> fields) {
  state_->set_fields(fields);
  state_->use_default();
}

HaloVariant HaloExchange::variant() const noexcept { return state_->variant; }

void HaloExchange::use(HaloVariant variant) {
  state_->check_is_over("the variant is changed");
  state_->adopt(variant, state_->prepared(variant));
  state_->reason = "asked for";
  state_->tuning.reset();
}

std::string HaloExchange::explain() const {
  if (state_->tuning) return waywiser::explain(*state_->tuning);
  return std::string(name(state_->variant)) + ": " + state_->reason;
}

HaloCounts HaloExchange::counts(HaloVariant variant) const {
  HaloCounts all = state_->counts[static_cast<std::size_t>(variant)];
  if (variant == state_->variant && state_->run) all += state_->run->counts();
  return all;
}

void HaloExchange::keep(std::shared_ptr<void> owner) {
  state_->owner = std::move(owner);
  if (state_->run) state_->run->keep(state_->owner);
}

}  // namespace waywiser
