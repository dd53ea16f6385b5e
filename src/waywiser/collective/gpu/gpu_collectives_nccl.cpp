// The NCCL part of GpuCollectives.
#include <numeric>

#include "waywiser/base/error.hpp"
#include "waywiser/collective/gpu/gpu_collectives.hpp"
#include "waywiser/collective/gpu/rank_offer.hpp"
#include "waywiser/collective/nccl/nccl_network.hpp"
#include "waywiser/comm/session/rank_exchange.hpp"
#include "waywiser/comm/session/session.hpp"

namespace waywiser {
namespace {

constexpr std::size_t most_compared = 64;

}  // namespace

std::string GpuCollectives::set_up_nccl(RankExchange& exchange, const Members& members, const Call& call) {
  RankOffer mine;
  NcclUniqueId id;
  mine.refuse(reason_of([&] {
    if (platform_.backend() != "cuda")
      throw Error(ErrorKind::unavailable,
                  "NCCL is for CUDA GPUs, these are of the " + std::string(platform_.backend()) + " back end");
    const NcclLibrary& nccl = nccl_library();
    if (!nccl.why_not().empty()) throw Error(ErrorKind::unavailable, nccl.why_not());
    if (const auto why = open_network_for_nccl(session_.network().within_a_machine, session_.network().encrypted);
        !why.empty())
      throw Error(ErrorKind::unavailable, why);
    if (members.rank == 0) nccl.check(nccl.functions().get_unique_id(&id), "ncclGetUniqueId");
    platform_.identity(gpu_.index).copy(mine.landing.gpu.data(), mine.landing.gpu.size() - 1);
  }));
  std::vector<int> ranks(static_cast<std::size_t>(members.size()));
  std::iota(ranks.begin(), ranks.end(), 0);
  const std::vector<RankOffer> offers = offers_of_all(exchange, members.size(), mine);
  if (const std::string why = first_reason(offers, ranks); !why.empty()) return why;
  if (const std::string why = domain_.on_one_machine() ? shared_gpu(offers, ranks) : ""; !why.empty()) return why;
  exchange.broadcast(std::as_writable_bytes(std::span(id.bytes)), 0);
  mine.refuse(reason_of([&] {
    auto nccl = std::make_unique<NcclCommunicator>(id, members.rank, members.size(), stream_, waiter(call));
    nod_stream_ = platform_.open_stream(gpu_);
    nod_begins_ = platform_.create_event(gpu_);
    nod_ends_ = platform_.create_event(gpu_);
    const std::lock_guard lock(mutex_);
    nccl_ = std::move(nccl);
  }));
  std::string why = first_reason(offers_of_all(exchange, members.size(), mine), ranks);
  if (!why.empty() || domain_.is_whole()) return why;
  // This comparison connects all ranks: later ones need no turn of a rank that has continued.
  CallComparison comparison(session_, std::make_shared<const Members>(members), call);
  session_.wait(comparison);
  return {};
}

NcclCommunicator::Waiter GpuCollectives::waiter(const Call& call) {
  return [this, call](const std::function<bool()>& done) {
    session_.wait(call, [&done] { return done(); }, [] { return std::string("NCCL waits for other ranks"); });
  };
}

// The ranks compare their calls while NCCL runs; both end before any later work begins.
void GpuCollectives::enqueue_nccl(const CollectiveCall& call, ConstRegion input, Region output, Stream& stream) {
  const bool compare = domain_.is_whole() && call.ranks > 1;
  if (compare) {
    stream.record(*nod_begins_);
    nod_stream_->wait(*nod_begins_);
    enqueue_nod(on_stream::describe(call, call.as.type, call.as.op), call.ranks, *nod_stream_);
    nod_stream_->record(*nod_ends_);
  }
  by_nccl([&] { nccl_->enqueue(call, call.as.type, call.as.op, input, output, stream, waiter(call.as)); });
  if (compare) stream.wait(*nod_ends_);
}

// If the group has failed, its reason says more than that of NCCL, which has been stopped for it.
void GpuCollectives::by_nccl(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error&) {
    const std::string why = session_.failure();
    if (why.empty()) throw;
    throw Error(ErrorKind::io, why);
  }
}

// Limits how many calls a rank may be ahead of the others.
void GpuCollectives::compare_by_host(const std::shared_ptr<const Members>& members, const Call& call) {
  session_.wait(
      call, [this] { return !is_comparing() || comparing_.size() < most_compared; },
      [this] { return comparing_.front()->progress_text(); });
  comparing_.push_back(std::make_shared<CallComparison>(session_, members, call));
  session_.start(comparing_.back());
}

bool GpuCollectives::is_comparing() {
  std::erase_if(comparing_, [](const auto& each) { return !each->under_way; });
  return !comparing_.empty();
}

}  // namespace waywiser
