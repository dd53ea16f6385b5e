#include "waywiser/collective/gpu/host_engine.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "waywiser/base/error.hpp"
#include "waywiser/comm/session/kept_failure.hpp"
#include "waywiser/comm/session/session.hpp"

namespace waywiser {
namespace {

// Extra time beyond the host's timeout, since the host's error says more.
constexpr Seconds hosts_speak = 5;

Region writable(const ConstRegion& region) { return {const_cast<std::byte*>(region.data), region.bytes, region.place}; }

}  // namespace

void HostEngine::enqueue(const GpuAlgorithm&, const CollectiveCall& call, ConstRegion input, Region output,
                         Stream& stream) {
  const bool same = input.data == output.data && input.bytes == output.bytes;
  const bool broadcasts = call.operation == Collective::broadcast, root = hosts_.core().rank() == call.root;
  run(call.as, hosts_.schedule_for(call),
      {{writable(input)}, {output}, same, !broadcasts || root, !broadcasts || !root}, stream);
}

void HostEngine::run(const Call& call, std::shared_ptr<const Schedule> schedule, ProxiedArrays arrays, Stream& stream) {
  ProxyOperation::Parts parts;
  parts.push_back(std::make_unique<ProxiedCollective>(session_, hosts_.core().shared_members(), call,
                                                      std::move(schedule), std::move(arrays)));
  run(call, domain_.why_not_whole(), std::move(parts), stream);
}

void HostEngine::refuse_capture(const Call& call, const std::string& why, const Stream& stream) {
  if (!stream.capturing()) return;
  throw Error(ErrorKind::unavailable,
              text(call) + " goes through the host, which no graph can capture" + (why.empty() ? "" : ": " + why));
}

// Taking host memory and the first enqueued work may wait for the same event as a stream at a gate, so the progress
// thread runs meanwhile.
void HostEngine::run(const Call& call, const std::string& why, ProxyOperation::Parts parts, Stream& stream,
                     const std::function<void()>& meanwhile) {
  refuse_capture(call, why, stream);
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
  session_.start(
      std::make_shared<ProxyOperation>(session_, call, gate_, begins != 0 ? begins : ends, ends, std::move(parts)));
}

void HostEngine::set_up_gate() {
  if (gate_) return;
  std::shared_ptr<StreamGate> gate;
  const Members& members = hosts_.core().members();
  {
    const Session::ThreadRuns thread_runs(session_);
    gate = std::make_shared<StreamGate>(order_.platform(), order_.gpu(), static_cast<int>(members.peer(members.rank)));
  }
  if (const KeptFailure* kept = session_.gpus().kept_failure(order_.gpu())) gate->keep_context(kept->on_gpu());
  staging_.emplace(order_.platform(), order_.gpu());
  const std::lock_guard lock(mutex_);
  gate_ = std::move(gate);
}

// A program far ahead of its stream waits here, since unfinished calls keep host memory.
void HostEngine::make_room(const Call& call) {
  const auto has_room = [this] {
    staging_->reclaim();
    return !staging_->is_full();
  };
  session_.wait(call, has_room, [] { return "the calls before it on streams keep all host memory for copies"; });
}

std::optional<Error> HostEngine::failure(const std::string& group) const {
  const std::lock_guard lock(mutex_);
  return gate_ ? gate_->failure(group) : std::nullopt;
}

void HostEngine::stop() noexcept {
  const std::lock_guard lock(mutex_);
  if (gate_) gate_->stop();
}

}  // namespace waywiser
