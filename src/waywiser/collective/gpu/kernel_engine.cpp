#include "waywiser/collective/gpu/kernel_engine.hpp"

#include <algorithm>
#include <cstdint>

#include "waywiser/collective/fused/fused_works.hpp"
#include "waywiser/comm/message/members.hpp"
#include "waywiser/comm/message/rank_exchange.hpp"
#include "waywiser/comm/session/session.hpp"

namespace waywiser {
KernelEngine::KernelEngine(RankExchange& exchange, Session& session, const Members& members, StreamOrder& order)
    : exchange_(exchange),
      session_(session),
      order_(order),
      ranks_(members.size()),
      domain_(exchange, session, members, order.gpu(), *order.own()) {}

std::string KernelEngine::why_not(const GpuAlgorithm& way, const CollectiveCall& call) const {
  if (call.ranks > 1 && !domain_.is_whole() && !domain_.why_not_whole().empty()) return domain_.why_not_whole();
  if ((call.ranks > 1 && !domain_.is_whole()) || !fused::has_method(call.operation, way.method))
    return "no kernel does it in this way";
  if (fused::is_ll128(way.method) && !domain_.why_no_ll128().empty()) return domain_.why_no_ll128();
  return call.operation == Collective::barrier ? "" : fused::why_no_kernel(call).value_or("");
}

GpuAlgorithm KernelEngine::default_way(const CollectiveCall& call) const {
  const bool has_choice = domain_.is_whole() && call.operation != Collective::barrier;
  return {GpuAlgorithm::Engine::kernels,
          has_choice ? domain_.fused()->default_method(call, call.as.type) : fused::Method::ll, 0, 0};
}

// Takes more memory for operations of more than 1 MiB a block if that saves kernels.
bool KernelEngine::prepare(const GpuAlgorithm& way, const CollectiveCall& call, bool capturing) {
  const DataType type = call.as.type;
  const FusedCollective* fused = domain_.is_whole() ? domain_.fused() : nullptr;
  if (capturing || fused == nullptr || call.count * bytes_of(type) <= most_in_slice || !why_not(way, call).empty() ||
      fused->pieces(call, type, way.method) == 1)
    return true;
  enlarge_until(on_stream::describe(call, type, call.as.op), [&](const FusedOptions& options) {
    return FusedCollective::pieces(call, type, way.method, options) == 1;
  });
  return true;
}

void KernelEngine::reserve(Bytes largest) {
  if (!domain_.is_whole() || largest <= most_in_slice) return;
  const auto ranks = static_cast<Bytes>(ranks_);
  const auto all_reduce = static_cast<std::uint32_t>(Collective::all_reduce);
  const on_stream::Description as{all_reduce, DataType::uint8, ReduceOp::max, -1, largest};
  enlarge_until(as, [&](const FusedOptions& options) {
    return options.bulk_bytes >= largest && 2 * options.bulk_bytes / ranks >= largest;
  });
}

void KernelEngine::enlarge_until(const on_stream::Description& as,
                                 const std::function<bool(const FusedOptions&)>& is_enough) {
  const auto larger = larger_memories();
  const auto wanted = static_cast<std::size_t>(std::ranges::find_if(larger, is_enough) - larger.begin());
  const std::size_t index = std::min(wanted, larger.size() - 1);
  if (index < enlarged_) return;
  enlarged_ = index + 1;
  // The kernels detect ranks that are in another call while this one waits for them.
  Stream& stream = *order_.own();
  order_.begin(stream);
  nod(as, ranks_, stream);
  order_.note(stream);
  static_cast<void>(domain_.enlarge(exchange_, larger[index]));
}

void KernelEngine::enqueue(const GpuAlgorithm& way, const CollectiveCall& call, ConstRegion input, Region output,
                           Stream& stream) {
  const Session::ThreadRuns thread_runs(session_);
  if (call.operation == Collective::barrier) {
    nod(on_stream::describe(call, call.as.type, call.as.op), call.ranks, stream);
  } else if (call.ranks > 1) {
    run(way, call, call.as.op, input, output, stream);
  } else if (output.data != input.data) {
    stream.copy(output, input);
  }
}

void KernelEngine::run(const GpuAlgorithm& way, const CollectiveCall& call, ReduceOp op, ConstRegion input,
                       Region output, Stream& stream, const on_stream::Description* as) {
  const DataType type = call.as.type;
  const bool by_ll = way.method != fused::Method::ll || fused::fits_into_packets(type, op);
  const fused::Method method = by_ll ? way.method : fused::Method::one_shot;
  fused::KernelShape shape = fused::default_shape(call, call.count * bytes_of(type), method, domain_.multiprocessors());
  if (way.blocks != 0) shape = fused::KernelShape{method, way.blocks, way.threads};
  shape = fused::within(shape, domain_.max_ctas());
  domain_.fused()->set_deadline(session_.timeout());
  domain_.fused()->enqueue(call, type, op, input, output, stream, shape, as);
}

void KernelEngine::nod(const on_stream::Description& description, int ranks, Stream& stream) {
  if (domain_.fused() == nullptr) return;
  CollectiveCall call;
  call.operation = Collective::all_reduce;
  call.as.type = DataType::uint8;
  call.rank = domain_.rank();
  call.ranks = ranks;
  call.count = sizeof(std::uint64_t);
  const Region word = domain_.buffers().own_word();
  const GpuAlgorithm ll{GpuAlgorithm::Engine::kernels, fused::Method::ll, 0, 0};
  run(ll, call, ReduceOp::max, word, word, stream, &description);
}

}  // namespace waywiser
