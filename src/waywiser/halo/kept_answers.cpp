#include "waywiser/halo/kept_answers.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>

#include "waywiser/base/fingerprint_hash.hpp"
#include "waywiser/group/group.hpp"
#include "waywiser/halo/agreement.hpp"
#include "waywiser/halo/side_kind.hpp"

namespace waywiser {
namespace {

constexpr std::string_view answers_schema = "waywiser.halo_answers";
constexpr int answers_version = 1;
constexpr std::size_t most_answers = 1000;  // of a file; the oldest ones leave

[[noreturn]] void refuse_answer(const std::string& what, const std::string& why) {
  throw Error(ErrorKind::invalid_input, what + ": " + why);
}

HaloVariant variant_in(const Json& object, const char* key, const std::string& what, bool may_be_mixed) {
  const std::string word = require_string(object, key, what);
  if (may_be_mixed && word == name(HaloVariant::mixed)) return HaloVariant::mixed;
  try {
    return parse_halo_variant(word);
  } catch (const Error& error) {
    refuse_answer(what, error.what());
  }
}

HaloTime time_in(const Json& times, HaloVariant variant, const std::string& what) {
  const std::string key(name(variant));
  const auto found = times.find(key);
  if (found == times.end() || found->is_null()) return {variant, "it was unavailable in an earlier run", 0, 0, 0};
  const double median = require_number(times, key, what);
  if (!(median > 0)) refuse_answer(what, "the time of " + key + " is not above 0");
  return {variant, {}, median, median, median};
}

std::uint64_t key_in(const Json& side, const std::string& what) {
  const std::string text = require_string(side, "kind", what);
  std::uint64_t key = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), key, 16);
  if (failed != std::errc() || end != text.data() + text.size() || key == 0)
    refuse_answer(what, "a kind of sides is a hexadecimal number, not " + text.substr(0, 40));
  return key;
}

HaloTuning tuning_in(const Json& answer, const std::string& what) {
  HaloTuning tuning;
  tuning.chosen = variant_in(answer, "variant", what, true);
  const Json& times = require(answer, "times", what);
  if (!times.is_object()) refuse_answer(what, "the times are no object");
  for (const HaloVariant each : halo_variants) tuning.times.push_back(time_in(times, each, what));
  if (times.contains(name(HaloVariant::mixed)) || tuning.chosen == HaloVariant::mixed)
    tuning.times.push_back(time_in(times, HaloVariant::mixed, what));
  if (!std::ranges::find(tuning.times, tuning.chosen, &HaloTime::variant)->why_unavailable.empty())
    refuse_answer(what, "the times lack the variant " + std::string(name(tuning.chosen)));
  if (tuning.chosen != HaloVariant::mixed) return tuning;
  tuning.base = variant_in(answer, "other_sides", what, false);
  for (const Json& side : require_array(answer, "sides", what)) {
    const std::uint64_t key = key_in(side, what);
    tuning.kinds.push_back({key, words_of(kind_of(key)), variant_in(side, "variant", what, false), {}});
  }
  return tuning;
}

std::string in_hexadecimal(std::uint64_t number) {
  std::array<char, 17> text{};
  std::snprintf(text.data(), text.size(), "%llx", static_cast<unsigned long long>(number));
  return text.data();
}

std::string digest_of(const std::optional<HaloTuning>& tuning) {
  return tuning ? halo_answers_json({{{}, *tuning}}).dump() : "none";
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

}  // namespace

Json halo_answers_json(const std::vector<HaloAnswer>& answers) {
  Json list = Json::array();
  for (const HaloAnswer& each : answers) {
    const HaloTuning& tuning = each.tuning;
    Json times = Json::object();
    for (const HaloTime& time : tuning.times)
      times[std::string(name(time.variant))] = time.why_unavailable.empty() ? Json(time.median) : Json(nullptr);
    Json answer = {{"shape", each.shape}, {"variant", name(tuning.chosen)}, {"times", std::move(times)}};
    if (tuning.chosen == HaloVariant::mixed) {
      answer["other_sides"] = name(tuning.base);
      answer["sides"] = Json::array();
      for (const HaloKindTimes& kind : tuning.kinds)
        answer["sides"].push_back({{"kind", in_hexadecimal(kind.key)},
                                   {"about", words_of(kind_of(kind.key))},
                                   {"variant", name(kind.chosen)}});
    }
    list.push_back(std::move(answer));
  }
  return {{"schema", answers_schema}, {"version", answers_version}, {"answers", std::move(list)}};
}

std::vector<HaloAnswer> halo_answers(const Json& value, const std::string& what) {
  check_schema(value, answers_schema, answers_version, what);
  std::vector<HaloAnswer> answers;
  for (const Json& each : require_array(value, "answers", what)) {
    const std::string where = what + ": answers[" + std::to_string(answers.size()) + "]";
    answers.push_back({require_string(each, "shape", where), tuning_in(each, where)});
  }
  return answers;
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

KeptHaloAnswers::KeptHaloAnswers(Group& group, const std::filesystem::path& file, std::uint64_t shape)
    : group_(group), file_(is_folder(file) ? file / "halo.json" : file) {
  FingerprintHash all;
  for (const std::uint64_t each : said_by_all(group, shape)) all.add(each);
  shape_ = all.hexadecimal();
}

std::optional<HaloTuning> KeptHaloAnswers::known() {
  throw_at_all(group_, failure_of([&] {
                 if (is_there(file_)) answers_ = halo_answers(read_json(file_), file_.string());
               }));
  std::optional<HaloTuning> mine;
  if (const auto found = std::ranges::find(answers_, shape_, &HaloAnswer::shape); found != answers_.end())
    mine = found->tuning;
  const std::vector<std::uint64_t> all = said_by_all(group_, number_of(digest_of(mine)));
  const bool same = std::ranges::all_of(all, [&](std::uint64_t each) { return each == all.front(); });
  if (!same || !mine) return {};
  mine->source = file_.string();
  return mine;
}

void KeptHaloAnswers::keep(const HaloTuning& tuning) {
  std::erase_if(answers_, [&](const HaloAnswer& each) { return each.shape == shape_; });
  answers_.push_back({shape_, tuning});
  if (answers_.size() > most_answers) answers_.erase(answers_.begin(), answers_.end() - most_answers);
  throw_at_all(group_, failure_of([&] { write_json(file_, halo_answers_json(answers_)); }));
}

}  // namespace waywiser
