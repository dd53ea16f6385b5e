#include "waywiser/group/gpu_calls.hpp"

#include <algorithm>
#include <mutex>

#include "waywiser/base/error.hpp"
#include "waywiser/collective/gpu/gpu_collectives.hpp"
#include "waywiser/collective/nccl/nccl_network.hpp"

namespace waywiser {
namespace {

// Extra time beyond the timeout, in which a kernel itself reports the rank that it waited for.
constexpr Seconds kernels_speak = 2;

// Collectives that no kernel carries out whole.
bool go_as_messages(const CollectiveCall& wanted) {
  return wanted.operation == Collective::gather || wanted.operation == Collective::scatter || !wanted.counts.empty();
}

bool is_on_gpu(const Stream* stream) { return stream != nullptr && stream->place().is_gpu(); }

Region writable(const ConstRegion& region) { return {const_cast<std::byte*>(region.data), region.bytes, region.place}; }

}  // namespace

GpuCalls::GpuCalls(HostCollectives& hosts, GroupMessages& messages, std::shared_ptr<ExposedMemory> exposed)
    : hosts_(hosts), messages_(messages), session_(hosts.session()), exposed_(std::move(exposed)) {}

// The child of a fork does not touch the parent's GPU.
GpuCalls::~GpuCalls() {
  session_.lock_when_free_of(hosts_.members().key());
  const std::lock_guard lock(session_, std::adopt_lock);
  if (session_.is_forked() && on_gpus_) static_cast<void>(new std::shared_ptr<GpuCollectives>(std::move(on_gpus_)));
  on_gpus_.reset();
}

std::string GpuCalls::why_staged() const {
  const std::string why = on_gpus_ ? on_gpus_->why_no_kernels() : "";
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

GpuCollectives& GpuCalls::gpus_of(Place gpu, bool capturing) {
  if (!on_gpus_) {
    if (capturing)
      throw Error(ErrorKind::unavailable,
                  "the first collective of a group on GPUs sets them up and cannot be captured: call it once before");
    on_gpus_ = std::make_shared<GpuCollectives>(hosts_, session_, hosts_.shared_members(), gpu, exposed_);
    set_algorithm(algorithm_);
  }
  if (on_gpus_->gpu() != gpu)
    throw Error(ErrorKind::invalid_input,
                "arrays of " + text(gpu) + ": the collectives of this group use " + text(on_gpus_->gpu()));
  return *on_gpus_;
}

GpuCollectives& GpuCalls::gpus_on(Stream& stream) {
  if (on_gpus_) on_gpus_->check();
  return gpus_of(stream.place(), stream.capturing());
}

bool GpuCalls::collective(const Call& call, const CollectiveCall& wanted, ConstElements input, Elements output,
                          Stream* stream) {
  if (stream != nullptr && !is_on_gpu(stream)) stream->synchronize(Deadline::in(session_.timeout()));
  if (!go_as_messages(wanted) && by_kernels(call, wanted, input, output, stream)) return true;
  if (!is_on_gpu(stream)) return false;
  const InCall in_call(session_, call);
  const bool blocks = wanted.operation == Collective::all_to_all && input.region.place.is_gpu() &&
                      !gpus_on(*stream).domain().is_whole();
  if (blocks || go_as_messages(wanted))
    by_messages(call, wanted, input, output, *stream);
  else
    by_hosts(call, wanted, input, output, *stream);
  return true;
}

// The hosts carry out the whole call, with the schedule that they would use without a stream.
void GpuCalls::by_hosts(const Call& call, const CollectiveCall& wanted, ConstElements input, Elements output,
                        Stream& stream) {
  const bool same = input.region.data == output.region.data && input.region.bytes == output.region.bytes;
  const bool broadcasts = wanted.operation == Collective::broadcast, root = hosts_.rank() == wanted.root;
  gpus_on(stream).enqueue_by_hosts(
      call, hosts_.schedule_for(wanted, call.type),
      {{writable(input.region)}, {output.region}, same, !broadcasts || root, !broadcasts || !root}, stream);
}

void GpuCalls::prepare(Place gpu, Bytes largest) { gpus_of(gpu, false).prepare(hosts_, hosts_.members(), largest); }

// Requires GPU arrays at all ranks; if a rank has host arrays, the ranks that wait detect it.
bool GpuCalls::by_kernels(const Call& call, const CollectiveCall& wanted, ConstElements input, Elements output,
                          Stream* stream) {
  const Place place = output.region.place;
  if (!place.is_gpu() || !input.region.place.is_gpu()) return false;
  if (wanted.count == 0 && wanted.operation != Collective::barrier) return false;
  if (on_gpus_) on_gpus_->check();  // knows why a stream failed; a failed stream cannot even say whether it is captured
  const bool capturing = stream != nullptr && stream->capturing();
  GpuCollectives& gpus = gpus_of(place, capturing);
  CollectiveCall complete = wanted;
  complete.rank = hosts_.rank();
  complete.ranks = hosts_.size();
  const std::optional<GpuAlgorithm> way = gpus.algorithm_for(hosts_, hosts_.members(), call, complete, capturing);
  if (!way) return false;
  const InCall in_call(session_, call);
  if (gpus.is_compared_by_host(*way, complete.ranks)) gpus.compare_by_host(hosts_.shared_members(), call);
  gpus.enqueue(call, *way, complete, input.region, output.region, stream != nullptr ? *stream : gpus.stream());
  if (stream == nullptr) finish(gpus, gpus.stream(), call);
  return true;
}

// Waits until the stream has run the call. If a rank has not come, the kernel that waited for it has trapped and names
// it; the host gives up a little later. After a failure this rank no longer touches the caller's memory.
void GpuCalls::finish(GpuCollectives& gpus, Stream& stream, const Call& call) {
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
        [] { return std::string("the GPU has not finished"); }, kernels_speak);
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
  const Call call = hosts_.next_call(CallKind::wait, {});
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
    throw Error(error.kind() == ErrorKind::timeout ? ErrorKind::timeout : ErrorKind::io, why);
  }
}

void GpuCalls::start(DeviceExecution& prepared, Stream* stream) {
  on_gpus_->enqueue_prepared(prepared, stream != nullptr ? *stream : on_gpus_->stream());
}

void GpuCalls::synchronize() { synchronize(on_gpus_->stream()); }

void GpuCalls::end_prepared() noexcept { on_gpus_->end_prepared(); }

}  // namespace waywiser
