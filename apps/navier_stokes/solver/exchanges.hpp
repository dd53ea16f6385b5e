#pragma once

#include <array>
#include <string>
#include <vector>
#include <waywiser/group/group.hpp>
#include <waywiser/halo/halo_exchange.hpp>
#include <waywiser/halo/tuning.hpp>

#include "apps/navier_stokes/mesh/ghost_lists.hpp"
#include "apps/parallel.hpp"

namespace flow {

// What a run spends on other ranks, at this one.
struct Spent {
  waywiser::Seconds exchanges = 0, reductions = 0;
  std::int64_t exchange_calls = 0, reduction_calls = 0;
};

// All halo exchanges of a run, so that one variant or one measurement serves them together, and its sums over all
// ranks.
class Exchanges {
 public:
  Exchanges(waywiser::Group& group, apps::Processor& processor) : group_(group), processor_(processor) {}

  // Of this rank, with so many cells.
  waywiser::HaloPartition partition_of(std::int64_t cells, const std::vector<GhostLists>& neighbors) const {
    return flow::partition_of(group_.rank(), group_.size(), cells, neighbors);
  }
  // Collective: the number of a new exchange that fills the ghosts of one array.
  std::size_t add(const waywiser::HaloPartition& partition, apps::Array<double>& values, std::size_t components);
  // Fills the ghosts, behind all loops so far.
  void fill(std::size_t number);
  // While they are timed, fill() waits for the GPU before and after each exchange.
  void set_timed(bool timed) { timed_ = timed; }
  bool timed() const { return timed_; }

  // The sum over all ranks.
  template <std::size_t count>
  std::array<double, count> sum(std::array<double, count> values) {
    const waywiser::Seconds begun = now();
    group_.all_reduce(std::span<const double>(values), std::span<double>(values));
    spent_.reductions += now() - begun;
    ++spent_.reduction_calls;
    return values;
  }
  double max(double value);

  // Collective: one variant for all exchanges; throws unavailable.
  void use(waywiser::HaloVariant variant);
  // Collective: measures each exchange for so many seconds, and gives each the variant that is fastest there.
  void tune(waywiser::Seconds seconds);
  // Whether kernels carry all exchanges, at all ranks: then a graph can hold them.
  bool by_kernels() const;
  // Changes with the variants.
  int choices() const { return choices_; }
  // For people: how many exchanges use which variant.
  std::string variants() const;
  // What all exchanges have done by their present variants.
  waywiser::HaloCounts counts() const;

  const Spent& spent() const { return spent_; }
  void forget_spent() { spent_ = {}; }
  waywiser::Group& group() { return group_; }
  apps::Processor& processor() { return processor_; }
  static waywiser::Seconds now();

 private:
  waywiser::Group& group_;
  apps::Processor& processor_;
  std::vector<waywiser::HaloExchange> all_;
  Spent spent_;
  bool timed_ = true;
  int choices_ = 0;
};

}  // namespace flow
