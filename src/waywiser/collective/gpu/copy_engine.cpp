#include "waywiser/collective/gpu/copy_engine.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>

#include "waywiser/collective/fused/parts.hpp"
#include "waywiser/comm/session/session.hpp"
#include "waywiser/policy/copy_defaults.hpp"

namespace waywiser {

CollectiveCopyEngine::CollectiveCopyEngine(RankExchange& exchange, Session& session, KernelEngine& kernels,
                                           StreamOrder& order)
    : exchange_(exchange),
      session_(session),
      kernels_(kernels),
      order_(order),
      rank_(kernels.domain().rank()),
      ranks_(kernels.domain().size()) {}

std::string CollectiveCopyEngine::why_not(const GpuAlgorithm&, const CollectiveCall& call) const {
  if (!why_unusable_.empty()) return why_unusable_;
  const KernelDomain& domain = kernels_.domain();
  if (!domain.is_whole()) return domain.why_not_whole().empty() ? "it is for several ranks" : domain.why_not_whole();
  if (domain.keeps_context())
    return "a failure is to keep the context of a GPU, where no kernel stops the copies behind it";
  return why_no_copies(call);
}

bool CollectiveCopyEngine::prepare(const GpuAlgorithm& way, const CollectiveCall& call, bool capturing) {
  if (tried_ || !why_not(way, call).empty()) return true;
  if (capturing)
    throw Error(ErrorKind::unavailable,
                "the first call by copy engines cannot be captured: make one of that size once before");
  tried_ = true;
  why_unusable_ = set_up(call);
  return why_unusable_.empty();
}

// The nod detects ranks that are in another call while this one waits for them.
std::string CollectiveCopyEngine::set_up(const CollectiveCall& call) {
  Stream& own = *order_.own();
  order_.begin(own);
  kernels_.nod(on_stream::describe(call, call.as.type, call.as.op), ranks_, own);
  order_.note(own);
  const CopyLanding landing = CopyLanding::of(ranks_, defaults::copied_slot);
  return kernels_.domain().share_apart(
      exchange_, landing.bytes(),
      [&](Region) {
        pipeline_ = std::make_unique<CopyPipeline>(order_.platform(), order_.gpu());
        sums_ = order_.platform().create_launch_cache(order_.gpu());
      },
      [&](std::vector<Region> all) {
        landing_ = landing;
        landings_ = std::move(all);
      });
}

void CollectiveCopyEngine::enqueue(const GpuAlgorithm& way, const CollectiveCall& call, ConstRegion input,
                                   Region output, Stream& stream) {
  const Session::ThreadRuns thread_runs(session_);
  const Bytes pieces = way.pieces != 0 ? way.pieces : static_cast<Bytes>(defaults::copied_pieces);
  const std::vector<CopyStep> steps = copy_steps(call, landing_, pieces);
  on_stream::Description as = on_stream::describe(call, call.as.type, call.as.op);
  as.cut = static_cast<std::uint32_t>(std::bit_width(copied_piece(call, landing_, pieces)));
  pipeline_->begin(stream);
  keep_own_block(call, input, output);
  pipeline_->run({steps.size(), [&](Stream& on) { kernels_.nod(as, ranks_, on); },
                  [&](std::size_t step, Stream& on) { push(steps[step], step, input, output, on); },
                  [&](std::size_t step, Stream& on) { take(call, steps[step], step, input, output, on); },
                  [&](std::size_t step) { return steps[step].after; }});
  pipeline_->join(stream);
}

void CollectiveCopyEngine::keep_own_block(const CollectiveCall& call, ConstRegion input, Region output) {
  const Bytes block = call.count * bytes_of(call.as.type);
  const Bytes at = static_cast<Bytes>(call.rank) * block;
  const auto keep = [&](ConstRegion from, Region to) {
    if (from.data != to.data) pipeline_->takes().copy(to, from);
  };
  if (call.operation == Collective::all_gather) keep(input.slice(0, block), output.slice(at, block));
  if (call.operation == Collective::all_to_all) keep(input.slice(at, block), output.slice(at, block));
  if (call.operation == Collective::broadcast && call.rank == call.root)
    keep(input.slice(0, block), output.slice(0, block));
}

void CollectiveCopyEngine::push(const CopyStep& step, std::size_t number, ConstRegion input, Region output,
                                Stream& stream) {
  for (const CopyStep::Push& each : step.pushes) {
    const ConstRegion all = each.of_output ? ConstRegion(output) : input;
    const Region& there = landings_[static_cast<std::size_t>(each.to)];
    stream.copy(there.slice(landing_.at(number, each.to, rank_), each.bytes), all.slice(each.from, each.bytes));
  }
}

void CollectiveCopyEngine::take(const CollectiveCall& call, const CopyStep& step, std::size_t number, ConstRegion input,
                                Region output, Stream& stream) {
  const auto arrived = [&](int from, Bytes bytes) {
    return landings_[static_cast<std::size_t>(rank_)].slice(landing_.at(number, rank_, from), bytes);
  };
  for (const CopyStep::Take& each : step.takes)
    stream.copy(output.slice(each.to, each.bytes), arrived(each.from, each.bytes));
  if (step.summed == 0) return;
  std::vector<ConstRegion> parts;
  for (int rank = 0; rank < ranks_; ++rank)
    parts.push_back(rank == rank_ ? input.slice(step.own, step.summed) : ConstRegion(arrived(rank, step.summed)));
  fused::add_up(stream, sums_.get(), parts, output.slice(step.sum, step.summed), call.as.type, call.as.op);
}

}  // namespace waywiser
