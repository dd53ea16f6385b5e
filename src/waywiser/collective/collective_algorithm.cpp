#include "waywiser/collective/collective_algorithm.hpp"

#include <array>

#include "waywiser/base/error.hpp"
#include "waywiser/collective/all_gather/all_gather.hpp"
#include "waywiser/collective/all_reduce/all_reduce.hpp"
#include "waywiser/collective/all_to_all/all_to_all.hpp"
#include "waywiser/collective/barrier/barrier.hpp"
#include "waywiser/collective/broadcast/broadcast.hpp"
#include "waywiser/collective/fused/fused_schedules.hpp"
#include "waywiser/collective/gather/gather.hpp"
#include "waywiser/collective/neighbor_exchange/neighbor_exchange.hpp"
#include "waywiser/collective/reduce/reduce.hpp"
#include "waywiser/collective/reduce_scatter/reduce_scatter.hpp"
#include "waywiser/collective/scan/scan.hpp"
#include "waywiser/collective/scatter/scatter.hpp"

namespace waywiser {
namespace collective {
namespace {

using enum Collective;

using fused::Method;

template <Method method>
constexpr CollectiveAlgorithm kernel_row(Collective operation) {
  return {operation, fused::row_name(method), fused::schedule_of<method>, fused::cost_of<method>, fused::why_not_fused,
          method};
}

// On equal cost the earlier row wins.
constexpr auto table = std::to_array<CollectiveAlgorithm>({
    {all_reduce, "one_shot", all_reduce::one_shot, all_reduce::one_shot_cost, nullptr},
    {all_reduce, "two_shot", all_reduce::two_shot, all_reduce::two_shot_cost, nullptr},
    {all_reduce, "recursive_doubling", all_reduce::recursive_doubling, all_reduce::recursive_doubling_cost, nullptr},
    {all_reduce, "halving_doubling", all_reduce::halving_doubling, all_reduce::halving_doubling_cost, nullptr},
    {all_reduce, "ring", all_reduce::ring, all_reduce::ring_cost, nullptr},
    {all_reduce, "double_tree", all_reduce::double_tree, all_reduce::double_tree_cost, nullptr},
    {all_reduce, "hierarchical", all_reduce::hierarchical, all_reduce::hierarchical_cost,
     all_reduce::why_not_hierarchical},
    {reduce, "direct", reduce::direct, reduce::direct_cost, nullptr},
    {reduce, "binomial_tree", reduce::binomial_tree, reduce::binomial_tree_cost, nullptr},
    {reduce_scatter, "direct", reduce_scatter::direct, reduce_scatter::direct_cost, nullptr},
    {reduce_scatter, "recursive_halving", reduce_scatter::recursive_halving, reduce_scatter::recursive_halving_cost,
     nullptr},
    {reduce_scatter, "ring", reduce_scatter::ring, reduce_scatter::ring_cost, nullptr},
    {broadcast, "binomial_tree", broadcast::binomial_tree, broadcast::binomial_tree_cost, nullptr},
    {broadcast, "scatter_all_gather", broadcast::scatter_all_gather, broadcast::scatter_all_gather_cost, nullptr},
    {broadcast, "chain", broadcast::chain, broadcast::chain_cost, nullptr},
    {broadcast, "double_tree", broadcast::double_tree, broadcast::double_tree_cost, nullptr},
    {all_gather, "direct", all_gather::direct, all_gather::direct_cost, nullptr},
    {all_gather, "recursive_doubling", all_gather::recursive_doubling, all_gather::recursive_doubling_cost,
     all_gather::why_not_recursive_doubling},
    {all_gather, "bruck", all_gather::bruck, all_gather::bruck_cost, nullptr},
    {all_gather, "ring", all_gather::ring, all_gather::ring_cost, nullptr},
    {gather, "direct", gather::direct, gather::direct_cost, nullptr},
    {gather, "binomial_tree", gather::binomial_tree, gather::binomial_tree_cost, nullptr},
    {scatter, "direct", scatter::direct, scatter::direct_cost, nullptr},
    {scatter, "binomial_tree", scatter::binomial_tree, scatter::binomial_tree_cost, nullptr},
    {all_to_all, "direct", all_to_all::direct, all_to_all::direct_cost, nullptr},
    {all_to_all, "pairwise", all_to_all::pairwise, all_to_all::pairwise_cost, nullptr},
    {all_to_all, "bruck", all_to_all::bruck, all_to_all::bruck_cost, all_to_all::why_not_bruck},
    {barrier, "dissemination", barrier::dissemination, barrier::dissemination_cost, nullptr},
    {Collective::scan, "recursive_doubling", scan::recursive_doubling, scan::recursive_doubling_cost, nullptr},
    {Collective::scan, "chain", scan::chain, scan::chain_cost, nullptr},
    {exscan, "recursive_doubling", scan::recursive_doubling, scan::recursive_doubling_cost, nullptr},
    {exscan, "chain", scan::chain, scan::chain_cost, nullptr},
    {neighbor_exchange, "direct", neighbor_exchange::direct, neighbor_exchange::direct_cost, nullptr},
    // Algorithms that the GPUs of one machine run by themselves.
    kernel_row<Method::ll>(all_reduce),
    kernel_row<Method::one_shot>(all_reduce),
    kernel_row<Method::two_shot>(all_reduce),
    kernel_row<Method::ll128>(all_reduce),
    kernel_row<Method::two_shot_ll128>(all_reduce),
    kernel_row<Method::ll>(reduce),
    kernel_row<Method::one_shot>(reduce),
    kernel_row<Method::two_shot>(reduce),
    kernel_row<Method::ll>(reduce_scatter),
    kernel_row<Method::one_shot>(reduce_scatter),
    kernel_row<Method::ll128>(reduce_scatter),
    kernel_row<Method::ll>(all_gather),
    kernel_row<Method::one_shot>(all_gather),
    kernel_row<Method::ll128>(all_gather),
    kernel_row<Method::ll>(all_to_all),
    kernel_row<Method::one_shot>(all_to_all),
    kernel_row<Method::ll128>(all_to_all),
    kernel_row<Method::ll>(broadcast),
    kernel_row<Method::one_shot>(broadcast),
    kernel_row<Method::two_shot>(broadcast),
});

}  // namespace
}  // namespace collective

std::optional<std::string> CollectiveAlgorithm::why_unavailable(const CollectiveCall& call) const {
  if (call.operation != operation)
    return std::string(name) + " is an algorithm of " + std::string(waywiser::name(operation));
  return why_not == nullptr ? std::nullopt : why_not(call);
}

std::span<const CollectiveAlgorithm> algorithms() { return collective::table; }

const CollectiveAlgorithm& find_algorithm(Collective operation, std::string_view name) {
  std::string known;
  for (const CollectiveAlgorithm& row : collective::table) {
    if (row.operation != operation) continue;
    if (row.name == name) return row;
    known += (known.empty() ? "" : ", ") + std::string(row.name);
  }
  throw Error(ErrorKind::invalid_input, quoted(name, 40) + " is no algorithm of " +
                                            std::string(waywiser::name(operation)) + "; there are " + known);
}

}  // namespace waywiser
