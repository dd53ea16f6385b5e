#include "waywiser/group/gpu_calls.hpp"

#include <algorithm>
#include <mutex>
#include <tuple>

#include "waywiser/base/error.hpp"
#include "waywiser/collective/gpu/stream_operations.hpp"
#include "waywiser/collective/nccl/nccl_network.hpp"
#include "waywiser/comm/session/in_call.hpp"

namespace waywiser {
namespace {

// Collectives that no kernel carries out whole.
bool go_as_messages(const CollectiveCall& wanted) {
  return wanted.operation == Collective::gather || wanted.operation == Collective::scatter || !wanted.counts.empty();
}

// The root's other array may be in host memory, which no other rank knows.
bool has_root_apart(const CollectiveCall& wanted) {
  return wanted.operation == Collective::gather || wanted.operation == Collective::scatter;
}

bool are_on_gpu(ConstElements input, ConstElements output) {
  return input.region.place.is_gpu() && output.region.place.is_gpu();
}

// Kernels need GPU arrays at all ranks; if a rank has host arrays, the ranks that wait detect it.
bool is_for_kernels(const CollectiveCall& wanted, ConstElements input, ConstElements output) {
  return !go_as_messages(wanted) && are_on_gpu(input, output) &&
         (wanted.count != 0 || wanted.operation == Collective::barrier);
}

bool is_on_gpu(const Stream* stream) { return stream != nullptr && stream->place().is_gpu(); }

}  // namespace

GpuCalls::GpuCalls(HostCollectives& hosts, GroupMessages& messages, std::shared_ptr<ExposedMemory> exposed)
    : hosts_(hosts),
      core_(hosts.core()),
      messages_(messages),
      session_(core_.session()),
      exposed_(std::move(exposed)) {}

// The child of a fork does not touch the parent's GPU.
GpuCalls::~GpuCalls() {
  session_.lock_when_free_of(core_.members().key());
  const std::lock_guard lock(session_, std::adopt_lock);
  if (session_.is_forked() && on_gpus_) static_cast<void>(new std::shared_ptr<StreamOperations>(std::move(on_gpus_)));
  on_gpus_.reset();
}

std::string GpuCalls::why_staged() const {
  const std::string why = on_gpus_ ? on_gpus_->domain().why_not_whole() : "";
  const std::string network =
      why_no_network_for_nccl(session_.network().within_a_machine, session_.network().encrypted);
  return why.empty() || network.empty() ? why : why + "; " + network;
}

void GpuCalls::set_algorithm(std::optional<Way> way) {
  algorithm_ = std::move(way);
  if (!on_gpus_) return;
  if (!algorithm_) return on_gpus_->set_algorithm({}, {}, {});
  on_gpus_->set_algorithm(gpu_algorithm(*algorithm_), message_algorithm(*algorithm_), program_algorithm(*algorithm_));
}

StreamOperations& GpuCalls::gpus_of(Place gpu, bool capturing) {
  if (!on_gpus_) {
    if (capturing)
      throw Error(ErrorKind::unavailable,
                  "the first call of a group on GPUs sets them up and cannot be captured: call it once before");
    on_gpus_ = std::make_shared<StreamOperations>(hosts_, gpu, exposed_);
    set_algorithm(algorithm_);
  }
  if (on_gpus_->gpu() != gpu)
    throw Error(ErrorKind::invalid_input,
                "arrays of " + text(gpu) + ": the collectives of this group use " + text(on_gpus_->gpu()));
  return *on_gpus_;
}

StreamOperations& GpuCalls::gpus_on(Stream& stream) {
  if (on_gpus_) on_gpus_->check();
  return gpus_of(stream.place(), stream.capturing());
}

// Without a stream a call goes as messages only where kernels serve all ranks.
std::optional<Place> GpuCalls::gpu_for(const CollectiveCall& wanted, ConstElements input, Elements output,
                                       const Stream* stream) {
  const bool blocks = stream == nullptr && go_as_messages(wanted) && !has_root_apart(wanted);
  if (is_for_kernels(wanted, input, output) || (blocks && are_on_gpu(input, output))) return output.region.place;
  return is_on_gpu(stream) ? std::optional(stream->place()) : std::nullopt;
}

void GpuCalls::set_up(Place gpu, const Call& call, const Stream* stream) {
  try {
    static_cast<void>(gpus_of(gpu, stream != nullptr && stream->capturing()));
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::timeout) throw;
    throw Error(error.kind(), std::string(error.what()) + "; " + text(call) +
                                  " is this rank's first call on GPUs, and sets them up with all ranks of the group");
  }
}

std::optional<std::shared_ptr<Activity>> GpuCalls::collective(CollectiveCall& wanted, Place gpu, ConstElements input,
                                                              Elements output, Mode mode) {
  Stream* const stream = mode.stream();
  if (on_gpus_) on_gpus_->check();  // knows why a stream failed; a failed stream cannot even say whether it is captured
  const bool capturing = stream != nullptr && stream->capturing();
  StreamOperations& gpus = gpus_of(gpu, capturing);
  Stream& line = stream != nullptr ? *stream : gpus.stream();
  std::tie(wanted.symmetric_input.slot, wanted.symmetric_input.offset) = exposed_->symmetric_place(input.region);
  std::tie(wanted.symmetric_output.slot, wanted.symmetric_output.offset) = exposed_->symmetric_place(output.region);
  GpuAlgorithm way;  // by the hosts
  if (is_for_kernels(wanted, input, output)) way = gpus.ready_way(wanted, capturing);
  const bool by_hosts = way.engine == GpuAlgorithm::Engine::host, whole = gpus.domain().is_whole();
  if (by_hosts && !is_on_gpu(stream) && !(go_as_messages(wanted) && (whole || wanted.ranks == 1))) return {};
  const bool as_messages =
      by_hosts &&
      (go_as_messages(wanted) || (wanted.operation == Collective::all_to_all && input.region.place.is_gpu() && !whole));
  const InCall in_call(session_, wanted.as);
  if (as_messages)
    by_messages(wanted, input, output, line);
  else
    gpus.enqueue(way, wanted, input.region, output.region, line);
  if (mode.begins()) return gpus.begun(on_gpus_, wanted.as);
  if (stream == nullptr) finish(gpus, line, wanted.as);
  return nullptr;
}

void GpuCalls::prepare(Place gpu, Bytes largest) { gpus_of(gpu, false).prepare(largest); }

// Waits until the stream has run the call. If a rank has not come, the kernel that waited for it has trapped and names
// it; the host gives up a little later. After a failure this rank no longer touches the caller's memory.
void GpuCalls::finish(StreamOperations& gpus, Stream& stream, const Call& call) {
  const auto fail_with_reason = [&] {
    try {
      gpus.check();
    } catch (const Error& error) {
      gpus.stop(stream);
      session_.fail(error.kind(), text(call) + ": " + error.what());
    }
  };
  try {
    session_.wait(
        call, [&] { return stream.done() && !gpus.is_comparing(); },
        [] { return std::string("the GPU has not finished"); }, StreamOperations::kernels_speak);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::interrupted) fail_with_reason();
    gpus.stop(stream);
    throw;
  }
  fail_with_reason();
}

void GpuCalls::before_hosts(const Call& call, Stream& stream) {
  if (on_gpus_) on_gpus_->check();
  if (stream.capturing())
    throw Error(ErrorKind::unavailable, text(call) + " goes through the host, which no graph can capture" +
                                            (why_staged().empty() ? "" : ": " + why_staged()));
  synchronize(stream);
}

void GpuCalls::synchronize(Stream& stream) {
  const Call call = core_.next_call(CallKind::wait, {});
  if (on_gpus_) return finish(*on_gpus_, stream, call);
  await(stream, call);
}

// The stream of a program that has no collectives on GPUs, but perhaps kernels that wait for other ranks.
void GpuCalls::await(Stream& stream, const Call& call) {
  const InCall in_call(session_, call);
  try {
    session_.wait(call, [&] { return stream.done(); }, [] { return std::string("the GPU has not finished"); });
  } catch (const Error& error) {
    const std::string why = session_.failure();
    if (error.kind() == ErrorKind::interrupted || why.empty()) throw;
    throw Error(session_.failure_kind(), why);
  }
}

void GpuCalls::start(DeviceExecution& prepared, Stream* stream) {
  on_gpus_->enqueue_prepared(prepared, stream != nullptr ? *stream : on_gpus_->stream());
}

void GpuCalls::synchronize() { synchronize(on_gpus_->stream()); }

void GpuCalls::end_prepared() noexcept { on_gpus_->end_prepared(); }

}  // namespace waywiser
