#include "waywiser/halo/kept_answers.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>

#include "waywiser/base/error.hpp"
#include "waywiser/base/fingerprint_hash.hpp"
#include "waywiser/base/json.hpp"
#include "waywiser/group/failure_at_all.hpp"
#include "waywiser/group/group.hpp"
#include "waywiser/halo/agreement.hpp"
#include "waywiser/halo/side_kind.hpp"
#include "waywiser/topology/discover.hpp"

namespace waywiser {
namespace {

constexpr std::string_view halo_operation = "halo";
constexpr const char* other_sides = "other";   // of a mix
constexpr std::ptrdiff_t most_answers = 1000;  // of a file; the oldest ones leave

std::string in_hexadecimal(std::uint64_t number) {
  std::array<char, 17> text{};
  std::snprintf(text.data(), text.size(), "%llx", static_cast<unsigned long long>(number));
  return text.data();
}

std::uint64_t kind_in(const std::string& text) {
  std::uint64_t key = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), key, 16);
  if (failed != std::errc() || end != text.data() + text.size() || key == 0)
    throw Error(ErrorKind::invalid_input, "a kind of sides is a hexadecimal number, not " + text.substr(0, 40));
  return key;
}

Way way_of(const HaloTuning& tuning, HaloVariant variant) {
  Way way{std::string(name(variant))};
  if (variant != HaloVariant::mixed) return way;
  way.parameters[other_sides] = name(tuning.base);
  for (const HaloKindTimes& each : tuning.kinds) way.parameters[in_hexadecimal(each.key)] = name(each.chosen);
  return way;
}

HaloVariant variant_of(const Way& way) {
  return way.name == name(HaloVariant::mixed) ? HaloVariant::mixed : parse_halo_variant(way.name);
}

void read_mix(HaloTuning& tuning, const Way& way) {
  if (!way.parameters.contains(other_sides))
    throw Error(ErrorKind::invalid_input, "a mix names the variant of its other sides");
  for (const auto& [key, variant] : way.parameters) {
    if (key == other_sides)
      tuning.base = parse_halo_variant(variant);
    else
      tuning.kinds.push_back({kind_in(key), words_of(kind_of(kind_in(key))), parse_halo_variant(variant), {}});
  }
}

HaloTuning tuning_of_row(const PlanRow& row) {
  if (row.expected.size() != 1) throw Error(ErrorKind::invalid_input, "it has one expected time");
  const Seconds seconds = row.expected.front().second;
  HaloTuning tuning;
  tuning.chosen = variant_of(row.way());
  for (const RankedWay& each : row.ways) {
    if (!(each.ratio > 0))
      throw Error(ErrorKind::invalid_input, "its way " + quoted(text(each.way), 80) + " has no ratio");
    const Seconds median = seconds * each.ratio;
    tuning.times.push_back({variant_of(each.way), {}, median, median, median});
    if (tuning.times.back().variant == HaloVariant::mixed) read_mix(tuning, each.way);
  }
  for (const HaloVariant each : halo_variants)
    if (std::ranges::find(tuning.times, each, &HaloTime::variant) == tuning.times.end())
      tuning.times.push_back({each, "it was unavailable in an earlier run", 0, 0, 0});
  return tuning;
}

bool is_folder(const std::filesystem::path& file) {
  std::error_code unknown;
  return std::filesystem::is_directory(file, unknown);
}

// Reading says what is wrong with a file of which that is unknown.
bool is_there(const std::filesystem::path& file) {
  std::error_code unknown;
  return std::filesystem::exists(file, unknown) || unknown;
}

std::uint64_t number_of(const std::string& text) {
  FingerprintHash hash;
  hash.add(text);
  return std::stoull(hash.hexadecimal(), nullptr, 16);
}

Bytes given_bytes(const HaloBoundary& boundary) {
  Bytes bytes = 0;
  for (const BoundaryPart& each : boundary.gives) bytes += each.part.count;  // of bytes
  return bytes;
}

bool is_halo(const PlanRow& row) { return row.key.operation == halo_operation && !row.key.shape.empty(); }

}  // namespace

PlanRow halo_row(PlanKey key, Bytes bytes, const HaloTuning& tuning) {
  PlanRow row{std::move(key), 0, no_end};
  std::vector<const HaloTime*> measured;
  for (const HaloTime& each : tuning.times)
    if (each.why_unavailable.empty()) measured.push_back(&each);
  std::ranges::stable_sort(measured, {}, &HaloTime::median);
  std::ranges::stable_partition(measured, [&](const HaloTime* each) { return each->variant == tuning.chosen; });
  const Seconds least = measured.front()->median;
  for (const HaloTime* each : measured) row.ways.push_back({way_of(tuning, each->variant), each->median / least});
  row.expected = {{std::max<Bytes>(bytes, 1), least}};
  row.why = "the least median of " + std::to_string(tuning.rounds) + " interleaved rounds";
  if (tuning.virtual_gpus) row.why += "; times of virtual GPUs, which say nothing about GPUs";
  return row;
}

HaloTuning halo_tuning(const PlanRow& row, const std::string& what) {
  try {
    return tuning_of_row(row);
  } catch (const Error& error) {
    throw Error(ErrorKind::invalid_input, what + ": " + error.what());
  }
}

std::uint64_t shape_of(const HaloBoundary& boundary, const std::string& place, const std::string& machine) {
  FingerprintHash hash;
  hash.add(place);
  hash.add(machine);
  for (const std::size_t bytes : boundary.field_bytes) hash.add(bytes);
  for (const auto* parts : {&boundary.gives, &boundary.takes}) {
    hash.add(parts->size());
    for (const BoundaryPart& each : *parts) {
      const BlockLayout& layout = each.part.layout;
      for (const std::uint64_t number : {std::uint64_t(each.peer), std::uint64_t{each.field}, std::uint64_t{each.side},
                                         std::uint64_t{each.part.count}, std::uint64_t{each.part.apart},
                                         std::uint64_t{layout.run}, std::uint64_t{layout.indices.size()}})
        hash.add(number);
      for (const BlockLayout::Dimension& dimension : layout.box) {
        hash.add(dimension.count);
        hash.add(dimension.stride);
      }
    }
  }
  return std::stoull(hash.hexadecimal(), nullptr, 16);
}

std::string shape_of_all(std::span<const std::uint64_t> ranks) {
  FingerprintHash all;
  for (const std::uint64_t each : ranks) all.add(each);
  return all.hexadecimal();
}

KeptHaloAnswers::KeptHaloAnswers(Group& group, const std::filesystem::path& file, const HaloBoundary& boundary,
                                 const std::string& place, std::string memory)
    : group_(group), file_(is_folder(file) ? file / "plan.json" : file) {
  const Topology machine = discover();
  plan_.fingerprint = fingerprint(machine);
  plan_.machine = machine.name;
  plan_.backend = place.substr(0, place.find(' '));
  for (const std::uint64_t each : said_by_all(group, given_bytes(boundary))) bytes_ = std::max<Bytes>(bytes_, each);
  key_ = {.operation = std::string(halo_operation),
          .memory = std::move(memory),
          .ranks = group.size(),
          .shape = shape_of_all(said_by_all(group, shape_of(boundary, place, plan_.fingerprint)))};
}

std::optional<HaloTuning> KeptHaloAnswers::known() {
  std::optional<HaloTuning> mine;
  std::string digest = "none";
  throw_at_all(group_, failure_of([&] {
                 read();
                 const auto row = std::ranges::find(plan_.rows, key_, &PlanRow::key);
                 if (row == plan_.rows.end()) return;
                 mine = halo_tuning(*row, file_.string() + ": rows[" + std::to_string(row - plan_.rows.begin()) + "]");
                 Plan alone;
                 alone.rows = {*row};
                 digest = to_json(alone).dump();
               }));
  const std::vector<std::uint64_t> all = said_by_all(group_, number_of(digest));
  const bool same = std::ranges::all_of(all, [&](std::uint64_t each) { return each == all.front(); });
  if (!same || !mine) return {};
  mine->source = file_.string();
  return mine;
}

void KeptHaloAnswers::read() {
  if (is_there(file_)) plan_ = plan_from_json(read_json(file_), file_.string());
}

// Reads the plan again: other programs may have changed it while this one measured.
void KeptHaloAnswers::keep(const HaloTuning& tuning) {
  throw_at_all(group_, failure_of([&] {
                 read();
                 std::erase_if(plan_.rows, [&](const PlanRow& each) { return each.key == key_; });
                 plan_.rows.push_back(halo_row(key_, bytes_, tuning));
                 std::ptrdiff_t more = std::ranges::count_if(plan_.rows, is_halo) - most_answers;
                 std::erase_if(plan_.rows, [&](const PlanRow& each) { return is_halo(each) && more-- > 0; });
                 write_json(file_, to_json(plan_));
               }));
}

}  // namespace waywiser
