#include <utility>

#include "waywiser/base/error.hpp"
#include "waywiser/collective/fused/works.hpp"
#include "waywiser/collective/gpu/gpu_collectives.hpp"
#include "waywiser/collective/gpu/hierarchy.hpp"
#include "waywiser/comm/session/rank_exchange.hpp"
#include "waywiser/policy/defaults.hpp"

namespace waywiser {

bool GpuCollectives::can(const GpuAlgorithm& way, const CollectiveCall& call) const {
  const bool barrier = call.operation == Collective::barrier;
  if (way.engine == Engine::nccl)
    return !barrier && call.ranks > 1 && why_no_nccl_.empty() && !NcclCommunicator::why_not(call, call.as.type);
  if (way.engine == Engine::host) return true;
  if (way.engine == Engine::hierarchy) return Hierarchy::serves(domain_, call);
  if (!fused::has_method(call.operation, way.method)) return false;
  if (fused::is_ll128(way.method) && !domain_.why_no_ll128().empty()) return false;
  return (domain_.is_whole() || call.ranks == 1) && (barrier || !fused::why_no_kernel(call));
}

// Without a measurement kernels are used up to this size. Between machines NCCL, if available; else kernels within
// machines.
GpuAlgorithm GpuCollectives::default_way(const CollectiveCall& call) const {
  const Bytes most = fused::has_method(call.operation, fused::Method::two_shot) ? defaults::kernels_before_nccl
                                                                                : defaults::blocks_before_nccl;
  const GpuAlgorithm kernels{Engine::kernels, {}, 0, 0}, nccl{Engine::nccl, {}, 0, 0};
  const bool large = call.count * bytes_of(call.as.type) > most;
  const GpuAlgorithm hierarchy{Engine::hierarchy, {}, 0, 0};
  for (const GpuAlgorithm& way : {large ? nccl : kernels, large ? kernels : nccl, hierarchy})
    if (can(way, call)) {
      if (way.engine != Engine::kernels || !domain_.is_whole() || call.operation == Collective::barrier) return way;
      return {Engine::kernels, domain_.fused()->default_method(call, call.as.type), 0, 0};
    }
  return {};
}

GpuAlgorithm GpuCollectives::choose(const CollectiveCall& call) const {
  if (way_) return *way_;
  if (call.operation != Collective::barrier && call.ranks > 1)
    if (const GpuAlgorithm* planned = planned_.find(
            call.operation, call.count * bytes_of(call.as.type),
            [&](const GpuAlgorithm& way) { return can(way, call); },
            [&](const GpuAlgorithm& way) { return why_cannot(way, call); }))
      return *planned;
  return default_way(call);
}

std::string GpuCollectives::why_cannot(const GpuAlgorithm& way, const CollectiveCall& call) const {
  if (way.engine == Engine::nccl)
    return why_no_nccl_.empty() ? NcclCommunicator::why_not(call, call.as.type).value_or("it has no such call")
                                : why_no_nccl_;
  if (way.engine == Engine::hierarchy) return "it is for ranks on several machines, with kernels on each";
  if (!why_no_kernels().empty()) return why_no_kernels();
  if (fused::is_ll128(way.method) && !domain_.why_no_ll128().empty()) return domain_.why_no_ll128();
  return fused::why_no_kernel(call).value_or("no kernel does it in this way");
}

std::optional<GpuAlgorithm> GpuCollectives::algorithm_for(RankExchange& exchange, const Members& members,
                                                          const CollectiveCall& call, bool capturing) {
  GpuAlgorithm way = choose(call);
  if (way.engine == Engine::nccl) {
    if (capturing && (!nccl_ || !nccl_->warm(call.operation)))
      throw Error(ErrorKind::unavailable, "the first " + std::string(name(call.operation)) +
                                              " by NCCL cannot be captured: call it once before");
    if (!std::exchange(nccl_tried_, true)) {
      why_no_nccl_ = set_up_nccl(exchange, members, call.as);
      way = choose(call);
    }
  }
  if (!can(way, call))
    throw Error(ErrorKind::unavailable, text(call.as) + " by " + text(way) + ": " + why_cannot(way, call));
  if (way.engine == Engine::kernels && !capturing) enlarge(exchange, members, way, call);
  return way.engine == Engine::host ? std::nullopt : std::optional(way);
}

}  // namespace waywiser
