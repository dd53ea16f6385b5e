#include "waywiser/collective/gpu/gpu_collectives.hpp"

#include <algorithm>
#include <utility>

#include "waywiser/base/error.hpp"
#include "waywiser/collective/fused/works.hpp"
#include "waywiser/collective/gpu/begun_gpu_call.hpp"
#include "waywiser/collective/gpu/hierarchy.hpp"
#include "waywiser/comm/peer_memory/gpu_connections.hpp"
#include "waywiser/comm/session/rank_exchange.hpp"
#include "waywiser/comm/session/session.hpp"
#include "waywiser/kernels/launch_trap.hpp"
#include "waywiser/policy/defaults.hpp"

namespace waywiser {
namespace {

constexpr Seconds last_patience = 5;

}  // namespace

GpuCollectives::GpuCollectives(RankExchange& exchange, Session& session, std::shared_ptr<const Members> members,
                               Place gpu, std::shared_ptr<ExposedMemory> exposed)
    : session_(session),
      platform_(session.gpus().platform()),
      gpu_(gpu),
      stream_(platform_.open_stream(gpu)),
      planned_(session.options().chooser.get(), members->size()),
      members_(std::move(members)),
      domain_(exchange, session, *members_, gpu, *stream_),
      prepared_(platform_, session.gpus().peer_memory(), domain_.buffers(), gpu, members_->rank,
                ProgramAlgorithms(session.options().chooser.get()), domain_.ranks_on_a_gpu()),
      exposed_(std::move(exposed)) {
  prepared_.set_why_no_ll128(domain_.why_no_ll128());
  if (domain_.messages() != nullptr) exposed_->watch(this);
  if (members_->size() == 1) return;
  session_.gpus().watchdog().add(*this);
  watched_ = true;
}

void GpuCollectives::enlarge(RankExchange& exchange, const Members& members, const GpuAlgorithm& way,
                             const CollectiveCall& call) {
  const DataType type = call.as.type;
  const fused::Method method = way.method;
  const FusedCollective* fused = domain_.is_whole() ? domain_.fused() : nullptr;
  if (fused == nullptr || call.count * bytes_of(type) <= most_in_slice || fused->pieces(call, type, method) == 1)
    return;
  enlarge_until(exchange, members, on_stream::describe(call, type, call.as.op),
                [&](const FusedOptions& options) { return FusedCollective::pieces(call, type, method, options) == 1; });
}

void GpuCollectives::prepare(RankExchange& exchange, const Members& members, Bytes largest) {
  if (!domain_.is_whole() || largest <= most_in_slice) return;
  const auto ranks = static_cast<Bytes>(members.size());
  const auto all_reduce = static_cast<std::uint32_t>(Collective::all_reduce);
  const on_stream::Description as{all_reduce, DataType::uint8, ReduceOp::max, -1, largest};
  enlarge_until(exchange, members, as, [&](const FusedOptions& options) {
    return options.bulk_bytes >= largest && 2 * options.bulk_bytes / ranks >= largest;
  });
}

// Collective.
void GpuCollectives::enlarge_until(RankExchange& exchange, const Members& members, const on_stream::Description& as,
                                   const std::function<bool(const FusedOptions&)>& is_enough) {
  const auto larger = larger_memories();
  const auto wanted = static_cast<std::size_t>(std::ranges::find_if(larger, is_enough) - larger.begin());
  const std::size_t index = std::min(wanted, larger.size() - 1);
  if (index < enlarged_) return;
  enlarged_ = index + 1;
  // The kernels detect ranks that are in another call while this one waits for them.
  begin(*stream_);
  enqueue_nod(as, members.size(), *stream_);
  note_end(*stream_);
  static_cast<void>(domain_.enlarge(exchange, larger[index]));
}

GpuCollectives::~GpuCollectives() {
  if (domain_.messages() != nullptr) exposed_->watch(nullptr);
  const std::string problem = reason_of([&] { settle(); });
  stop(*stream_);
  if (watched_) session_.gpus().watchdog().remove(*this);
  prepared_.let_go();
  if (problem.empty() && !thrown_ && session_.failure().empty()) domain_.buffers().leave(*platform_.open_stream(gpu_));
}

void GpuCollectives::let_go() noexcept {
  let_go_ = true;
  prepared_.let_go();
  domain_.buffers().let_go();
}

// Keeps calls on different streams in order; the caller must keep graphs apart.
void GpuCollectives::begin(Stream& stream) {
  if (stream.place() != gpu_)
    throw Error(ErrorKind::invalid_input,
                "a stream of " + text(stream.place()) + ": the collectives of this group use " + text(gpu_));
  check();
  if (!last_) return;
  const bool same = stream.native() != nullptr && stream.native() == last_native_;
  if (!same && !stream.capturing()) stream.wait(*last_);
}

void GpuCollectives::end(Stream& stream) {
  if (stream.capturing() || &stream == stream_.get()) return;
  note_end(stream);
  std::erase_if(leaving_, [](const Leaving& each) { return each.end->done(); });
}

void GpuCollectives::note_end(Stream& stream) {
  if (!last_) {
    auto event = platform_.create_event(gpu_);
    const std::lock_guard lock(mutex_);
    last_ = std::move(event);
  }
  stream.record(*last_);
  last_native_ = stream.native();
}

// Later calls on other streams wait for it.
std::shared_ptr<Activity> GpuCollectives::begun(const std::shared_ptr<GpuCollectives>& self, const Call& call) {
  std::shared_ptr<Event> end;
  {
    const Session::ThreadRuns thread_runs(session_);
    note_end(*stream_);
    end = platform_.create_event(gpu_);
    stream_->record(*end);
  }
  auto operation = std::make_shared<BegunGpuCall>(session_, call, self, std::move(end),
                                                  comparing_.empty() ? nullptr : comparing_.back());
  session_.start(operation);
  return operation;
}

void GpuCollectives::came(unsigned slot, const ExposedMemory::Window& window) { domain_.expose(slot, window, false); }

void GpuCollectives::went(unsigned slot, const ExposedMemory::Window& window) noexcept {
  if (let_go_) return;
  static_cast<void>(reason_of([&] {
    if (last_ && !last_->done()) {
      stream_->wait(*last_);
      leaving_.push_back({platform_.create_event(gpu_), window.mapped});
      stream_->record(*leaving_.back().end);
    }
    domain_.expose(slot, window, true);
  }));
}

void GpuCollectives::enqueue(const GpuAlgorithm& way, const CollectiveCall& call, ConstRegion input, Region output,
                             Stream& stream) {
  begin(stream);
  if (way.engine == Engine::hierarchy) {
    enqueue_hierarchy(call, input, output, stream);
    return end(stream);
  }
  const Session::ThreadRuns thread_runs(session_);
  if (call.operation == Collective::barrier) {
    enqueue_nod(on_stream::describe(call, call.as.type, call.as.op), call.ranks, stream);
  } else if (call.ranks == 1) {
    if (output.data != input.data) stream.copy(output, input);
  } else if (way.engine == Engine::nccl) {
    enqueue_nccl(call, input, output, stream);
  } else {
    enqueue_kernels(way, call, call.as.type, call.as.op, input, output, stream);
  }
  end(stream);
}

void GpuCollectives::enqueue_message(ConstElements give, int to, Elements take, int from, Stream& stream) {
  begin(stream);
  const Session::ThreadRuns thread_runs(session_);
  domain_.enqueue_message(give, to, take, from, stream, session_.timeout());
  end(stream);
}

void GpuCollectives::enqueue_messages(std::span<const PeerMessage> messages, Stream& stream) {
  if (messages.empty()) return;
  begin(stream);
  const Session::ThreadRuns thread_runs(session_);
  domain_.enqueue_messages(messages, stream, session_.timeout());
  end(stream);
}

void GpuCollectives::enqueue_prepared(DeviceExecution& execution, Stream& stream) {
  begin(stream);
  const Session::ThreadRuns thread_runs(session_);
  execution.enqueue(stream, session_.timeout());
  end(stream);
  if (&stream == stream_.get()) note_end(stream);
}

void GpuCollectives::end_prepared() noexcept {
  static_cast<void>(reason_of([&] {
    if (last_) session_.settle(*last_, Deadline::in(session_.timeout() + last_patience));
  }));
}

void GpuCollectives::enqueue_kernels(const GpuAlgorithm& way, const CollectiveCall& call, DataType type, ReduceOp op,
                                     ConstRegion input, Region output, Stream& stream,
                                     const on_stream::Description* as) {
  const bool by_ll = way.method != fused::Method::ll || fused::fits_into_packets(type, op);
  const fused::Method method = by_ll ? way.method : fused::Method::one_shot;
  fused::KernelShape shape = fused::default_shape(call, call.count * bytes_of(type), method, domain_.multiprocessors());
  if (way.blocks != 0) shape = fused::KernelShape{method, way.blocks, way.threads};
  domain_.fused()->set_deadline(session_.timeout());
  domain_.fused()->enqueue(call, type, op, input, output, stream, shape, as);
}

// Every rank of the domain hears from every other rank that it makes the same call. Without kernels there is no nod.
void GpuCollectives::enqueue_nod(const on_stream::Description& description, int ranks, Stream& stream) {
  if (domain_.fused() == nullptr) return;
  CollectiveCall nod;
  nod.operation = Collective::all_reduce;
  nod.rank = domain_.rank();
  nod.ranks = ranks;
  nod.count = sizeof(std::uint64_t);
  const Region word = domain_.buffers().own_word();
  const GpuAlgorithm ll{Engine::kernels, fused::Method::ll, 0, 0};
  enqueue_kernels(ll, nod, DataType::uint8, ReduceOp::max, word, word, stream, &description);
}

std::optional<Error> GpuCollectives::failure(const std::string& group) const {
  if (auto why = domain_.failure(group)) return why;
  if (auto why = prepared_.failure(group, members_->world)) return why;
  const std::lock_guard lock(mutex_);
  return gate_ ? gate_->failure(group) : std::nullopt;
}

bool GpuCollectives::is_gone() const {
  const std::lock_guard lock(mutex_);
  return last_ == nullptr || !reason_of([&] { static_cast<void>(last_->done()); }).empty();
}

void GpuCollectives::check() {
  if (const auto why = failure(session_.failure())) {
    thrown_ = true;
    throw Error(*why);
  }
  if (nccl_) by_nccl([&] { nccl_->check(); });
}

// Waits on the GPU end by themselves at the timeout.
void GpuCollectives::settle() {
  std::string problem;
  try {
    if (last_) session_.settle(*last_, Deadline::in(session_.timeout() + last_patience));
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::interrupted) throw;
    problem = error.what();
  }
  if (thrown_) return;
  check();
  if (!problem.empty()) throw Error(ErrorKind::device, "operations on " + text(gpu_) + " have not ended: " + problem);
}

void GpuCollectives::stop(Stream& stream) noexcept {
  stop();
  static_cast<void>(reason_of([&] { stream.synchronize(Deadline::in(last_patience)); }));
}

// After an abort NCCL's kernels would end as if they had succeeded: in a failed group they must trap.
void GpuCollectives::stop() noexcept {
  domain_.stop();
  prepared_.stop();
  const std::lock_guard lock(mutex_);
  if (gate_) gate_->stop();
  if (!nccl_) return;
  bool trapped = false;
  static_cast<void>(reason_of([&] {
    trapped = last_ && !last_->done();
    if (trapped) launch_trap(*stream_);
  }));
  trapped ? nccl_->abandon() : nccl_->abort();
}

}  // namespace waywiser
