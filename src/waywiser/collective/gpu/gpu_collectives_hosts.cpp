// The parts of GpuCollectives that the hosts carry out while a stream waits.
#include <algorithm>
#include <bit>

#include "waywiser/base/error.hpp"
#include "waywiser/collective/collective_algorithm.hpp"
#include "waywiser/collective/default_choice.hpp"
#include "waywiser/collective/gpu/gpu_collectives.hpp"
#include "waywiser/collective/gpu/hierarchy.hpp"
#include "waywiser/comm/session/session.hpp"

namespace waywiser {
namespace {

// Extra time beyond the host's timeout, since the host's error says more.
constexpr Seconds hosts_speak = 5;

}  // namespace

void GpuCollectives::refuse_capture(const Call& call, const std::string& why, const Stream& stream) {
  if (!stream.capturing()) return;
  throw Error(ErrorKind::unavailable,
              text(call) + " goes through the host, which no graph can capture" + (why.empty() ? "" : ": " + why));
}

// The hosts add up; for an average they also divide by the number of all ranks.
void GpuCollectives::enqueue_hierarchy(const CollectiveCall& call, ConstRegion input, Region output, Stream& stream) {
  refuse_capture(call.as, why_no_kernels(), stream);
  const DataType type = call.as.type;
  const on_stream::Description as = on_stream::describe(call, type, call.as.op);
  const ReduceOp op = call.as.op == ReduceOp::avg ? ReduceOp::sum : call.as.op;
  const auto by_kernels = [&](const CollectiveCall& part, ConstRegion in, Region out) {
    const Session::ThreadRuns thread_runs(session_);
    if (part.operation == Collective::barrier) return enqueue_nod(as, part.ranks, stream);
    if (part.count == 0) return;
    const GpuAlgorithm way{Engine::kernels, domain_.fused()->default_method(part, type), 0, 0};
    enqueue_kernels(way, part, type, op, in, out, stream, &as);
  };
  const auto by_hosts = [&](const std::vector<int>& ranks, const CollectiveCall& part, ProxiedArrays arrays) {
    const Schedule schedule = default_algorithm(part, bytes_of(type)).make(part);
    enqueue_by_hosts(call.as, std::make_shared<const Schedule>(among(schedule, ranks, call.rank, call.ranks)),
                     std::move(arrays), stream);
  };
  Hierarchy(domain_, type, {by_kernels, by_hosts, [this](Bytes bytes) { return scratch(bytes); }})
      .enqueue(call, input, output);
}

// Calls run one after another on the GPU.
Region GpuCollectives::scratch(Bytes bytes) {
  const Session::ThreadRuns thread_runs(session_);
  if (scratch_.empty() || scratch_.back().region().bytes < bytes)
    scratch_.push_back(platform_.allocate(gpu_, std::bit_ceil(std::max<Bytes>(bytes, 4096)), Allocation::gpu));
  return scratch_.back().region().slice(0, bytes);
}

void GpuCollectives::set_up_gate() {
  if (gate_) return;
  std::shared_ptr<StreamGate> gate;
  {
    const Session::ThreadRuns thread_runs(session_);
    gate = std::make_shared<StreamGate>(platform_, gpu_, static_cast<int>(members_->peer(members_->rank)));
  }
  staging_.emplace(platform_, gpu_);
  const std::lock_guard lock(mutex_);
  gate_ = std::move(gate);
}

// A program far ahead of its stream waits here, since unfinished calls keep host memory.
void GpuCollectives::make_room(const Call& call) {
  const auto has_room = [this] {
    staging_->reclaim();
    return !staging_->is_full();
  };
  session_.wait(call, has_room, [] { return "the calls before it on streams keep all host memory for copies"; });
}

// Taking host memory and the first enqueued work may wait for the same event as a stream at a gate, so the progress
// thread runs meanwhile.
void GpuCollectives::enqueue_by_hosts(const Call& call, const std::string& why, ProxyOperation::Parts parts,
                                      Stream& stream, const std::function<void()>& meanwhile) {
  refuse_capture(call, why, stream);
  begin(stream);
  session_.need_progress_thread();
  set_up_gate();
  make_room(call);
  const bool waits = std::ranges::any_of(parts, [](const auto& part) { return part->holds_stream(); });
  std::uint64_t begins = 0, ends = 0;
  {
    const Session::ThreadRuns thread_runs(session_);
    staging_->free_surplus();
    for (const auto& part : parts) part->take(*staging_);
    for (const auto& part : parts) part->fetch(stream);
    if (meanwhile || !waits) begins = gate_->note(stream);
    if (meanwhile) meanwhile();
    if (waits) ends = gate_->close(stream, text(call), session_.timeout() + hosts_speak);
    for (const auto& part : parts) part->put_back(stream);
    staging_->note_end(stream);
  }
  end(stream);
  session_.start(
      std::make_shared<ProxyOperation>(session_, call, gate_, begins != 0 ? begins : ends, ends, std::move(parts)));
}

void GpuCollectives::enqueue_by_hosts(const Call& call, std::shared_ptr<const Schedule> schedule, ProxiedArrays arrays,
                                      Stream& stream) {
  ProxyOperation::Parts parts;
  parts.push_back(
      std::make_unique<ProxiedCollective>(session_, members_, call, std::move(schedule), std::move(arrays)));
  enqueue_by_hosts(call, why_no_kernels(), std::move(parts), stream);
}

}  // namespace waywiser
