#include "waywiser/collective/gpu/hierarchy_engine.hpp"

#include <algorithm>
#include <bit>
#include <memory>
#include <utility>

#include "waywiser/collective/collective_algorithm.hpp"
#include "waywiser/collective/default_choice.hpp"
#include "waywiser/collective/gpu/hierarchy.hpp"
#include "waywiser/comm/session/session.hpp"

namespace waywiser {

std::string HierarchyEngine::why_not(const GpuAlgorithm&, const CollectiveCall& call) const {
  return Hierarchy::serves(kernels_.domain(), call) ? "" : "it is for ranks on several machines, with kernels on each";
}

// The hosts add up; for an average they also divide by the number of all ranks.
void HierarchyEngine::enqueue(const GpuAlgorithm&, const CollectiveCall& call, ConstRegion input, Region output,
                              Stream& stream) {
  const KernelDomain& domain = kernels_.domain();
  HostEngine::refuse_capture(call.as, domain.why_not_whole(), stream);
  const on_stream::Description as = on_stream::describe(call, call.as.type, call.as.op);
  const ReduceOp op = call.as.op == ReduceOp::avg ? ReduceOp::sum : call.as.op;
  const auto by_kernels = [&](const CollectiveCall& part, ConstRegion in, Region out) {
    const Session::ThreadRuns thread_runs(session_);
    if (part.operation == Collective::barrier) return kernels_.nod(as, part.ranks, stream);
    if (part.count == 0) return;
    const GpuAlgorithm way{GpuAlgorithm::Engine::kernels, domain.fused()->default_method(part, part.as.type), 0, 0};
    kernels_.run(way, part, op, in, out, stream, &as);
  };
  const auto by_hosts = [&](const std::vector<int>& ranks, const CollectiveCall& part, ProxiedArrays arrays) {
    const Schedule schedule = default_algorithm(part, bytes_of(part.as.type)).make(part);
    hosts_.run(call.as, std::make_shared<const Schedule>(among(schedule, ranks, call.rank, call.ranks)),
               std::move(arrays), stream);
  };
  Hierarchy(domain, call.as, {by_kernels, by_hosts, [this](Bytes bytes) { return scratch(bytes); }})
      .enqueue(call, input, output);
}

// Calls run one after another on the GPU.
Region HierarchyEngine::scratch(Bytes bytes) {
  const Session::ThreadRuns thread_runs(session_);
  if (scratch_.empty() || scratch_.back().region().bytes < bytes)
    scratch_.push_back(
        order_.platform().allocate(order_.gpu(), std::bit_ceil(std::max<Bytes>(bytes, 4096)), Allocation::gpu));
  return scratch_.back().region().slice(0, bytes);
}

}  // namespace waywiser
