#include "waywiser/collective/gpu/nccl_engine.hpp"

#include <numeric>
#include <span>
#include <utility>

#include "waywiser/base/error.hpp"
#include "waywiser/collective/gpu/rank_offer.hpp"
#include "waywiser/collective/nccl/nccl_network.hpp"
#include "waywiser/comm/message/rank_exchange.hpp"
#include "waywiser/comm/session/session.hpp"
#include "waywiser/kernels/launch_trap.hpp"

namespace waywiser {
namespace {

constexpr std::size_t most_compared = 64;

}  // namespace

std::string NcclEngine::why_not(const GpuAlgorithm&, const CollectiveCall& call) const {
  if (!why_unusable_.empty()) return why_unusable_;
  if (auto why = NcclCommunicator::why_not(call, call.as.type)) return *std::move(why);
  return call.operation == Collective::barrier || call.ranks == 1 ? "it has no such call" : "";
}

bool NcclEngine::prepare(const GpuAlgorithm&, const CollectiveCall& call, bool capturing) {
  if (capturing && (!nccl_ || !nccl_->warm(call.operation)))
    throw Error(ErrorKind::unavailable,
                "the first " + std::string(name(call.operation)) + " by NCCL cannot be captured: call it once before");
  if (std::exchange(tried_, true)) return true;
  why_unusable_ = set_up(call.as);
  return why_unusable_.empty();
}

std::string NcclEngine::set_up(const Call& call) {
  const Members& members = *members_;
  const KernelDomain& domain = kernels_.domain();
  Platform& platform = order_.platform();
  RankOffer mine;
  NcclUniqueId id;
  mine.refuse(reason_of([&] {
    if (platform.backend() != "cuda")
      throw Error(ErrorKind::unavailable,
                  "NCCL is for CUDA GPUs, these are of the " + std::string(platform.backend()) + " back end");
    const NcclLibrary& nccl = nccl_library();
    if (!nccl.why_not().empty()) throw Error(ErrorKind::unavailable, nccl.why_not());
    if (const auto why = open_network_for_nccl(session_.network().within_a_machine, session_.network().encrypted);
        !why.empty())
      throw Error(ErrorKind::unavailable, why);
    if (members.rank == 0) nccl.check(nccl.functions().get_unique_id(&id), "ncclGetUniqueId");
    platform.identity(order_.gpu().index).copy(mine.landing.gpu.data(), mine.landing.gpu.size() - 1);
  }));
  std::vector<int> ranks(static_cast<std::size_t>(members.size()));
  std::iota(ranks.begin(), ranks.end(), 0);
  const std::vector<RankOffer> offers = offers_of_all(exchange_, members.size(), mine);
  if (const std::string why = first_reason(offers, ranks); !why.empty()) return why;
  if (const std::string why = domain.on_one_machine() ? shared_gpu(offers, ranks) : ""; !why.empty()) return why;
  exchange_.broadcast(std::as_writable_bytes(std::span(id.bytes)), 0);
  mine.refuse(reason_of([&] {
    auto nccl = std::make_unique<NcclCommunicator>(id, members.rank, members.size(), order_.own(), waiter(call));
    nod_stream_ = platform.open_stream(order_.gpu());
    nod_begins_ = platform.create_event(order_.gpu());
    nod_ends_ = platform.create_event(order_.gpu());
    const std::lock_guard lock(mutex_);
    nccl_ = std::move(nccl);
  }));
  std::string why = first_reason(offers_of_all(exchange_, members.size(), mine), ranks);
  if (!why.empty() || domain.is_whole()) return why;
  // This comparison connects all ranks: later ones need no turn of a rank that has continued.
  CallComparison comparison(session_, members_, call);
  session_.wait(comparison);
  return {};
}

NcclCommunicator::Waiter NcclEngine::waiter(const Call& call) {
  return [this, call](const std::function<bool()>& done) {
    session_.wait(call, [&done] { return done(); }, [] { return std::string("NCCL waits for other ranks"); });
  };
}

// The ranks compare their calls while NCCL runs; both end before any later work begins.
void NcclEngine::enqueue(const GpuAlgorithm&, const CollectiveCall& call, ConstRegion input, Region output,
                         Stream& stream) {
  const bool nods = kernels_.domain().is_whole();
  if (!nods) compare_by_host(call.as);
  const Session::ThreadRuns thread_runs(session_);
  if (nods) {
    stream.record(*nod_begins_);
    nod_stream_->wait(*nod_begins_);
    kernels_.nod(on_stream::describe(call, call.as.type, call.as.op), call.ranks, *nod_stream_);
    nod_stream_->record(*nod_ends_);
  }
  guarded([&] { nccl_->enqueue(call, call.as.type, call.as.op, input, output, stream, waiter(call.as)); });
  if (nods) stream.wait(*nod_ends_);
}

// If the group has failed, its reason says more than that of NCCL, which has been stopped for it.
void NcclEngine::guarded(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error&) {
    const std::string why = session_.failure();
    if (why.empty()) throw;
    throw Error(session_.failure_kind(), why);
  }
}

void NcclEngine::check() {
  if (nccl_) guarded([&] { nccl_->check(); });
}

// It progresses while this rank waits for anything; limits how many calls a rank may be ahead of the others.
void NcclEngine::compare_by_host(const Call& call) {
  session_.wait(
      call, [this] { return !is_comparing() || comparing_.size() < most_compared; },
      [this] { return comparing_.front()->progress_text(); });
  comparing_.push_back(std::make_shared<CallComparison>(session_, members_, call));
  session_.start(comparing_.back());
}

bool NcclEngine::is_comparing() {
  std::erase_if(comparing_, [](const auto& each) { return !each->under_way; });
  return !comparing_.empty();
}

std::shared_ptr<const CallComparison> NcclEngine::comparison() const {
  return comparing_.empty() ? nullptr : comparing_.back();
}

// After an abort NCCL's kernels end as if they had succeeded: in a failed group they must trap, or a guard follows
// each.
void NcclEngine::stop() noexcept {
  const std::lock_guard lock(mutex_);
  if (!nccl_) return;
  bool trapped = false;
  static_cast<void>(reason_of([&] {
    trapped = order_.is_busy() && session_.gpus().kept_failure(order_.gpu()) == nullptr;
    if (trapped) launch_trap(*order_.own());
  }));
  trapped ? nccl_->abandon() : nccl_->abort();
}

}  // namespace waywiser
