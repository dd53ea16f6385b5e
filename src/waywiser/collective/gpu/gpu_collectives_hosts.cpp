// What GpuCollectives has the hosts do while a stream waits.
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

// After the timeout of what the host does, which says more.
constexpr Seconds hosts_speak = 5;

}  // namespace

void GpuCollectives::refuse_capture(const Call& call, const std::string& why, const Stream& stream) {
  if (!stream.capturing()) return;
  throw Error(ErrorKind::unavailable,
              text(call) + " goes through the host, which no graph can capture" + (why.empty() ? "" : ": " + why));
}

// An average is divided where the hosts add up: by the number of all ranks.
void GpuCollectives::enqueue_hierarchy(const Call& call, const CollectiveCall& wanted, ConstRegion input, Region output,
                                       Stream& stream) {
  refuse_capture(call, why_no_kernels(), stream);
  const on_stream::Description as = on_stream::describe(wanted, call.type, call.op);
  const ReduceOp op = call.op == ReduceOp::avg ? ReduceOp::sum : call.op;
  const auto by_kernels = [&](const CollectiveCall& part, ConstRegion in, Region out) {
    if (part.operation == Collective::barrier) return enqueue_nod(as, part.ranks, stream);
    if (part.count == 0) return;
    const GpuAlgorithm way{Engine::kernels, domain_.fused()->default_method(part, call.type), 0, 0};
    enqueue_kernels(way, part, call.type, op, in, out, stream, &as);
  };
  const auto by_hosts = [&](const std::vector<int>& ranks, const CollectiveCall& part, ProxiedArrays arrays) {
    const Schedule schedule = default_algorithm(part, bytes_of(call.type)).make(part);
    enqueue_by_hosts(call, std::make_shared<const Schedule>(among(schedule, ranks, wanted.rank, wanted.ranks)),
                     std::move(arrays), stream);
  };
  Hierarchy(domain_, call.type, {by_kernels, by_hosts, [this](Bytes bytes) { return scratch(bytes); }})
      .enqueue(wanted, input, output);
}

// Calls come one after another on the GPU.
Region GpuCollectives::scratch(Bytes bytes) {
  if (scratch_.empty() || scratch_.back().region().bytes < bytes)
    scratch_.push_back(platform_.allocate(gpu_, std::bit_ceil(std::max<Bytes>(bytes, 4096)), Allocation::gpu));
  return scratch_.back().region().slice(0, bytes);
}

StreamGate& GpuCollectives::gate() {
  if (!gate_) {
    auto gate = std::make_shared<StreamGate>(platform_, gpu_, members_->rank);
    const std::lock_guard lock(mutex_);
    gate_ = std::move(gate);
  }
  return *gate_;
}

std::unique_ptr<Event> GpuCollectives::mark(const Call& call, const std::string& why, Stream& stream) {
  refuse_capture(call, why, stream);
  begin(stream);
  auto reached = platform_.create_event(gpu_);
  stream.record(*reached);
  return reached;
}

void GpuCollectives::enqueue_by_hosts(const Call& call, ProxyOperation::Parts parts, Stream& stream,
                                      std::unique_ptr<Event> reached) {
  const std::uint64_t number = gate().close(stream, text(call), session_.timeout() + hosts_speak);
  end(stream);
  session_.start(std::make_shared<ProxyOperation>(session_, call, std::move(reached), gate_, number, std::move(parts)));
  session_.need_progress_thread();
}

void GpuCollectives::enqueue_by_hosts(const Call& call, std::shared_ptr<const Schedule> schedule, ProxiedArrays arrays,
                                      Stream& stream) {
  auto reached = mark(call, why_no_kernels(), stream);
  ProxyOperation::Parts parts;
  parts.push_back(
      std::make_unique<ProxiedCollective>(session_, members_, call, std::move(schedule), std::move(arrays)));
  enqueue_by_hosts(call, std::move(parts), stream, std::move(reached));
}

}  // namespace waywiser
