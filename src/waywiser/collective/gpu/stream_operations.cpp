#include "waywiser/collective/gpu/stream_operations.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "waywiser/base/error.hpp"
#include "waywiser/collective/fused/fused_works.hpp"
#include "waywiser/collective/gpu/begun_gpu_call.hpp"
#include "waywiser/collective/on_stream/guard.hpp"
#include "waywiser/comm/peer_memory/gpu_connections.hpp"
#include "waywiser/comm/session/kept_failure.hpp"
#include "waywiser/comm/session/session.hpp"
#include "waywiser/policy/defaults.hpp"

namespace waywiser {
namespace {

constexpr Seconds last_patience = 5;

}  // namespace

StreamOperations::StreamOperations(HostCollectives& hosts, Place gpu, std::shared_ptr<ExposedMemory> exposed)
    : session_(hosts.core().session()),
      members_(hosts.core().shared_members()),
      order_(session_.gpus().platform(), gpu),
      kernels_(hosts.core(), session_, *members_, order_),
      nccl_(hosts.core(), session_, members_, kernels_, order_),
      by_hosts_(hosts, kernels_.domain(), order_),
      hierarchy_(session_, kernels_, by_hosts_, order_),
      copies_(hosts.core(), session_, kernels_, order_),
      symmetric_(session_, kernels_, order_, *exposed),
      kept_(session_.gpus().kept_failure(gpu)),
      engines_{&by_hosts_, &kernels_, &nccl_, &hierarchy_, &copies_, &symmetric_},
      planned_(session_.options().chooser.get(), members_->size()),
      prepared_(order_.platform(), session_.gpus().peer_memory(), kernels_.domain().buffers(), gpu, members_->rank,
                ProgramAlgorithms(session_.options().chooser.get()), domain().ranks_on_a_gpu()),
      exposed_(std::move(exposed)) {
  if (kept_ != nullptr) prepared_.keep_context(kept_->on_gpu());
  prepared_.set_why_no_ll128(domain().why_no_ll128());
  if (domain().messages() != nullptr) exposed_->watch(this);
  if (members_->size() == 1) return;
  session_.gpus().watchdog().add(*this);
  watched_ = true;
}

StreamOperations::~StreamOperations() {
  if (domain().messages() != nullptr) exposed_->watch(nullptr);
  const std::string problem = reason_of([&] { settle(); });
  stop(stream());
  if (watched_) session_.gpus().watchdog().remove(*this);
  prepared_.let_go();
  if (problem.empty() && !thrown_ && session_.failure().empty())
    kernels_.domain().buffers().leave(*order_.platform().open_stream(gpu()));
}

void StreamOperations::let_go() noexcept {
  let_go_ = true;
  prepared_.let_go();
  kernels_.domain().buffers().let_go();
}

// Without a measurement kernels are used up to a size, and from there copy engines, else NCCL; each where the others do
// not serve.
// Between machines NCCL, if available; else kernels within machines; else the hosts.
GpuAlgorithm StreamOperations::default_way(const CollectiveCall& call) const {
  const Bytes most = fused::has_method(call.operation, fused::Method::two_shot) ? defaults::kernels_before_nccl
                                                                                : defaults::blocks_before_nccl;
  const bool large = call.count * bytes_of(call.as.type) > most;
  using Engines = std::array<const StreamEngine*, 4>;
  const Engines engines =
      large ? Engines{&nccl_, &kernels_, &copies_, &hierarchy_} : Engines{&kernels_, &nccl_, &copies_, &hierarchy_};
  for (const StreamEngine* engine : engines)
    if (const GpuAlgorithm way = engine->default_way(call); engine->why_not(way, call).empty()) return way;
  return by_hosts_.default_way(call);
}

GpuAlgorithm StreamOperations::way_of(const CollectiveCall& call) const {
  if (only_ && (call.operation != Collective::barrier || engine_of(*only_).why_not(*only_, call).empty()))
    return *only_;
  const auto why_not = [&](const GpuAlgorithm& way) { return engine_of(way).why_not(way, call); };
  if (symmetric_.is_default_of(call)) return symmetric_.default_way(call);
  if (call.operation != Collective::barrier && call.ranks > 1)
    if (const GpuAlgorithm* planned = planned_.find(
            call.operation, call.count * bytes_of(call.as.type),
            [&](const GpuAlgorithm& way) { return why_not(way).empty(); }, why_not))
      return *planned;
  return default_way(call);
}

GpuAlgorithm StreamOperations::ready_way(const CollectiveCall& call, bool capturing) {
  GpuAlgorithm way = way_of(call);
  if (!engine_of(way).prepare(way, call, capturing)) {
    way = way_of(call);
    engine_of(way).prepare(way, call, capturing);
  }
  if (const std::string why = engine_of(way).why_not(way, call); !why.empty())
    throw Error(ErrorKind::unavailable, text(call.as) + " by " + text(way) + ": " + why);
  return way;
}

void StreamOperations::begin(Stream& stream) {
  check();
  order_.begin(stream);
}

void StreamOperations::end(Stream& stream, std::span<const Region> outputs, bool by_nccl) {
  if (kept_ != nullptr) on_stream::guard(*kept_, outputs, by_nccl, stream);
  order_.end(stream);
  if (!leaving_.empty() && !stream.capturing())
    std::erase_if(leaving_, [](const Leaving& each) { return each.end->done(); });
}

void StreamOperations::enqueue(const GpuAlgorithm& way, const CollectiveCall& call, ConstRegion input, Region output,
                               Stream& stream) {
  begin(stream);
  engine_of(way).enqueue(way, call, input, output, stream);
  const bool gives_it = call.operation == Collective::broadcast && call.rank == call.root;
  end(stream, std::array{gives_it ? Region{} : output}, way.engine == GpuAlgorithm::Engine::nccl);
}

void StreamOperations::enqueue_by_hosts(const Call& call, const std::string& why, ProxyOperation::Parts parts,
                                        Stream& stream, const std::function<void()>& meanwhile) {
  HostEngine::refuse_capture(call, why, stream);
  begin(stream);
  std::vector<Region> outputs;
  for (const auto& part : parts) std::ranges::copy(part->outputs(), std::back_inserter(outputs));
  by_hosts_.run(call, why, std::move(parts), stream, meanwhile);
  end(stream, outputs);
}

void StreamOperations::prepare(Bytes largest) {
  check();
  kernels_.reserve(largest);
}

void StreamOperations::set_algorithm(std::optional<GpuAlgorithm> way, std::optional<MessageAlgorithm> of_messages,
                                     std::optional<ProgramAlgorithm> of_programs) {
  only_ = way;
  kernels_.domain().set_message_algorithm(of_messages);
  prepared_.set_algorithm(of_programs);
}

// Later calls on other streams wait for it.
std::shared_ptr<Activity> StreamOperations::begun(const std::shared_ptr<StreamOperations>& self, const Call& call) {
  std::shared_ptr<Event> end;
  {
    const Session::ThreadRuns thread_runs(session_);
    order_.note(stream());
    end = order_.platform().create_event(gpu());
    stream().record(*end);
  }
  auto operation = std::make_shared<BegunGpuCall>(session_, call, self, std::move(end), nccl_.comparison());
  session_.start(operation);
  return operation;
}

void StreamOperations::enqueue_message(ConstElements give, int to, Elements take, int from, Stream& stream) {
  begin(stream);
  const Session::ThreadRuns thread_runs(session_);
  kernels_.domain().enqueue_message(give, to, take, from, stream, session_.timeout());
  end(stream, std::array{take.region});
}

void StreamOperations::enqueue_messages(std::span<const PeerMessage> messages, const OwnBlock& own, Stream& stream) {
  if (messages.empty()) return;
  begin(stream);
  const Session::ThreadRuns thread_runs(session_);
  kernels_.domain().enqueue_messages({messages.begin(), messages.end()}, own, stream, session_.timeout());
  std::vector<Region> outputs;
  for (const PeerMessage& each : messages) outputs.push_back(each.take.region);
  outputs.push_back(own.to);
  end(stream, outputs);
}

void StreamOperations::enqueue_prepared(DeviceExecution& execution, Stream& on) {
  begin(on);
  const Session::ThreadRuns thread_runs(session_);
  execution.enqueue(on, session_.timeout());
  end(on, execution.outputs());
  if (&on == &stream()) order_.note(on);
}

void StreamOperations::end_prepared() noexcept {
  static_cast<void>(reason_of([&] {
    if (order_.last() != nullptr) session_.settle(*order_.last(), Deadline::in(session_.timeout() + last_patience));
  }));
}

void StreamOperations::came(unsigned slot, const ExposedMemory::Window& window) {
  kernels_.domain().expose(slot, window, false);
}

void StreamOperations::went(unsigned slot, const ExposedMemory::Window& window) noexcept {
  if (let_go_) return;
  static_cast<void>(reason_of([&] {
    if (order_.is_busy()) {
      stream().wait(*order_.last());
      leaving_.push_back({order_.platform().create_event(gpu()), window.mapped});
      stream().record(*leaving_.back().end);
    }
    kernels_.domain().expose(slot, window, true);
  }));
}

// What was stopped because the group has failed is of that failure's kind.
std::optional<Error> StreamOperations::failure(const std::string& group) const {
  auto why = kernels_.failure(group);
  if (!why) why = prepared_.failure(group, members_->world);
  if (!why) why = by_hosts_.failure(group);
  if (!why || why->kind() != ErrorKind::io || group.empty()) return why;
  return Error(session_.failure_kind(), why->what());
}

void StreamOperations::check() {
  if (const auto why = failure(session_.failure())) {
    thrown_ = true;
    throw Error(*why);
  }
  nccl_.check();
}

// Waits on the GPU end by themselves at the timeout.
void StreamOperations::settle() {
  std::string problem;
  try {
    if (order_.last() != nullptr) session_.settle(*order_.last(), Deadline::in(session_.timeout() + last_patience));
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::interrupted) throw;
    problem = error.what();
  }
  if (thrown_) return;
  check();
  if (!problem.empty()) throw Error(ErrorKind::device, "operations on " + text(gpu()) + " have not ended: " + problem);
}

void StreamOperations::stop(Stream& stream) noexcept {
  stop();
  static_cast<void>(reason_of([&] { stream.synchronize(Deadline::in(last_patience)); }));
}

// Where the context is kept, the device reports nothing: then the operations that other ranks held up have ended.
bool StreamOperations::is_gone() const {
  if (kept_ == nullptr) return order_.is_gone();
  bool busy = false;
  return !reason_of([&] { busy = order_.is_busy(); }).empty() || !busy;
}

// NCCL last: in a failed group its work is made to trap on the GPU, or is aborted once the guards know.
void StreamOperations::stop() noexcept {
  if (kept_ != nullptr) kept_->tell();
  kernels_.stop();
  prepared_.stop();
  by_hosts_.stop();
  nccl_.stop();
}

}  // namespace waywiser
