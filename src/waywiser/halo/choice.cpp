#include <algorithm>
#include <utility>

#include "waywiser/group/failure_at_all.hpp"
#include "waywiser/halo/agreement.hpp"
#include "waywiser/halo/halo_state.hpp"
#include "waywiser/halo/samples.hpp"
#include "waywiser/halo/side_kind.hpp"

namespace waywiser {
namespace {

constexpr std::uint64_t bit_of(HaloVariant variant) { return std::uint64_t{1} << static_cast<unsigned>(variant); }

// The variants by which any rank gives a side, as bits.
std::uint64_t used_by_any(Group& group, const HaloPartition& partition, const std::vector<HaloVariant>& gives) {
  std::uint64_t mine = 0, all = 0;
  for (std::size_t i = 0; i < gives.size(); ++i)
    if (partition.gives[i].cells.count != 0) mine |= bit_of(gives[i]);
  for (const std::uint64_t each : said_by_all(group, mine)) all |= each;
  return all;
}

void check_variants(const HaloPartition& partition, const std::vector<HaloVariant>& gives) {
  if (gives.size() != partition.gives.size())
    throw Error(ErrorKind::invalid_input, std::to_string(gives.size()) + " variants of a halo exchange for " +
                                              std::to_string(partition.gives.size()) + " sides of the partition");
  for (const HaloVariant each : gives)
    if (std::ranges::find(halo_variants, each) == std::end(halo_variants))
      throw Error(ErrorKind::invalid_input, "a side of a halo exchange has none of its variants");
}

}  // namespace

HaloChoice HaloExchange::State::all_by(HaloVariant variant) const {
  return {variant,
          {std::vector(partition.gives.size(), variant), std::vector(partition.takes.size(), variant)},
          variant != HaloVariant::direct,
          variant == HaloVariant::direct};
}

void HaloExchange::State::require_same_use(std::optional<HaloVariant> variant) {
  constexpr std::uint64_t a_list = 0, no_variant = 1, first_variant = 2;
  const bool known = variant && std::ranges::find(halo_variants, *variant) != std::end(halo_variants);
  const std::uint64_t mine = !variant ? a_list
                             : known  ? first_variant + static_cast<std::uint64_t>(*variant)
                                      : no_variant;
  const auto words_of_use = [](std::uint64_t word) -> std::string {
    if (word < first_variant) return word == a_list ? "a list" : "no variant that there is";
    return std::string(name(static_cast<HaloVariant>(word - first_variant)));
  };
  const std::vector<std::uint64_t> all = said_by_all(group, mine);
  for (std::size_t rank = 0; rank < all.size(); ++rank)
    if (all[rank] != all.front() || all[rank] == no_variant)
      throw_known_to_all(
          group, Error(ErrorKind::invalid_input, "use() of a halo exchange: rank " + std::to_string(rank) + " gives " +
                                                     words_of_use(all[rank]) +
                                                     (rank == 0 ? "" : ", rank 0 " + words_of_use(all.front()))));
}

HaloChoice HaloExchange::State::agreed(std::vector<HaloVariant> gives) {
  throw_at_all(group, failure_of([&] { check_variants(partition, gives); }));
  const std::uint64_t used = used_by_any(group, partition, gives);
  for (const HaloVariant each : halo_variants)
    if (used == bit_of(each)) return all_by(each);
  if (used == 0) return all_by(HaloVariant::packed);
  for (const HaloVariant each : halo_variants)
    if (!is_mixable(each) && (used & bit_of(each)) != 0)
      throw_known_to_all(
          group, Error(ErrorKind::invalid_input, "a halo exchange: " + std::string(name(each)) +
                                                     " serves all sides at once, so no side has another variant"));
  std::vector<std::uint8_t> words;
  std::ranges::transform(gives, std::back_inserter(words),
                         [](HaloVariant each) { return static_cast<std::uint8_t>(each); });
  HaloChoice made{HaloVariant::mixed,
                  {std::move(gives), {}},
                  (used & ~bit_of(HaloVariant::direct)) != 0,
                  (used & bit_of(HaloVariant::direct)) != 0};
  for (const std::uint8_t each : told_by_side(group, partition, words))
    made.mix.takes.push_back(static_cast<HaloVariant>(each));
  return made;
}

std::unique_ptr<HaloRun> HaloExchange::State::prepared(const HaloChoice& wanted) {
  const auto refuse = [&](const std::string& why) { throw_known_to_all(group, Error(ErrorKind::unavailable, why)); };
  if (wanted.kernels && !any_on_gpu) refuse("the fields are in host memory, which no kernel serves");
  if (wanted.variant == HaloVariant::strided && !any_on_gpu)
    refuse("the fields are in host memory, which no copy engine serves");
  const bool gpu_aware = wanted.variant == HaloVariant::gpu_aware;
  if (gpu_aware && !any_on_gpu) refuse("the fields are in host memory");
  if (gpu_aware && host_rank >= 0) refuse("rank " + std::to_string(host_rank) + " has its fields in host memory");
  std::unique_ptr<HaloRun> hosts, kernels;
  throw_at_all(group, failure_of([&] {
                 const HaloBoundary all = with_variants(boundary, wanted.mix);
                 if (wanted.kernels)
                   kernels = scheduled_run(group, halo_schedule(wanted.variant, parts_of_kernels(all, true)), arrays);
                 if (!wanted.hosts) return;
                 const HaloBoundary rest = parts_of_kernels(all, false);
                 hosts = gpu_aware ? gpu_aware_run(group, rest, arrays)
                         : on_gpu  ? staged_run(group, wanted.variant, rest, arrays)
                                   : scheduled_run(group, halo_schedule(wanted.variant, rest), arrays);
               }));
  std::unique_ptr<HaloRun> made = !kernels ? std::move(hosts)
                                  : !hosts ? std::move(kernels)
                                           : mixed_run(std::move(hosts), std::move(kernels));
  made->prepare();
  made->keep(owner);
  return made;
}

void HaloExchange::State::adopt(HaloChoice taken, std::unique_ptr<HaloRun> made) {
  if (run) counts[static_cast<std::size_t>(choice.variant)] += run->counts();
  choice = std::move(taken);
  run = std::move(made);
  times = {};
}

void HaloExchange::State::use(const HaloChoice& wanted) {
  check_is_over("the variant is changed");
  adopt(wanted, prepared(wanted));
  reason = "asked for";
  tuning.reset();
  tuned_for = 0;
}

std::vector<HaloSideUse> HaloExchange::sides() const {
  const auto alone = held().alone();
  const State& state = held();
  std::vector<HaloSideUse> all;
  for (std::size_t i = 0; i < state.partition.gives.size(); ++i) {
    const HaloSide& side = state.partition.gives[i];
    all.push_back({side.peer, side.face, side.cells.count, state.choice.mix.gives[i]});
  }
  return all;
}

std::string HaloExchange::State::words_of_sides() const {
  constexpr std::size_t most_lines = 64;
  std::string text;
  std::size_t lines = 0;
  for (std::size_t i = 0; i < partition.gives.size(); ++i) {
    const HaloSide& side = partition.gives[i];
    if (side.cells.count == 0 || ++lines > most_lines) continue;
    text += "\nto rank " + std::to_string(side.peer) + (side.face.empty() ? "" : " at " + words_of(side.face)) + ", " +
            std::to_string(side.cells.count) + " cells: " + std::string(name(choice.mix.gives[i]));
    if (!tuning || i >= kinds.size()) continue;
    const auto kind = std::ranges::find(tuning->kinds, kinds[i], &HaloKindTimes::key);
    if (kind != tuning->kinds.end()) text += runner_up(*kind);
  }
  if (lines > most_lines) text += "\nand " + std::to_string(lines - most_lines) + " more sides";
  return text;
}

}  // namespace waywiser
