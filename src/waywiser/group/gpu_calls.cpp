#include "waywiser/group/gpu_calls.hpp"

#include <algorithm>

#include "waywiser/base/error.hpp"
#include "waywiser/collective/gpu/gpu_collectives.hpp"
#include "waywiser/collective/nccl/nccl_network.hpp"
#include "waywiser/comm/session/tag.hpp"

namespace waywiser {
namespace {

// Of messages on streams that take the host's way: no message of a user has this one.
constexpr int stream_label = largest_label;
// After the timeout, in which kernels say themselves whom they have waited for.
constexpr Seconds kernels_speak = 2;

using Counts = std::vector<std::size_t>;

// Those that no kernel carries out whole.
bool go_as_messages(const CollectiveCall& wanted) {
  return wanted.operation == Collective::gather || wanted.operation == Collective::scatter || !wanted.counts.empty();
}

// The blocks that lie one after the other in an array.
template <typename Region>
std::vector<Region> blocks_of(const Region& array, const Counts& counts, DataType type) {
  std::vector<Region> blocks;
  Bytes at = 0;
  for (const std::size_t count : counts) {
    blocks.push_back(array.slice(at, count * bytes_of(type)));
    at += count * bytes_of(type);
  }
  return blocks;
}

// A block for one rank, none for the others.
template <typename Region>
std::vector<Region> only_for(int rank, const Region& block, int ranks) {
  std::vector<Region> blocks(static_cast<std::size_t>(ranks));
  blocks[static_cast<std::size_t>(rank)] = block;
  return blocks;
}

[[noreturn]] void throw_no_gpus(const Call& call) {
  throw Error(ErrorKind::unavailable, text(call) + " on a stream: a collective on GPUs, such as barrier, comes first");
}

bool on_host(const ConstRegion& region) { return region.bytes != 0 && !region.place.is_gpu(); }

// What is exchanged with one rank, in the order of tags, in which the other side has it as well.
template <typename Elements>
std::vector<Elements> exchanged_with(int rank, std::span<const Exchange> neighbors, int Exchange::* tag,
                                     Elements Exchange::* elements) {
  std::vector<Exchange> with;
  std::ranges::copy_if(neighbors, std::back_inserter(with), [&](const Exchange& each) { return each.rank == rank; });
  std::ranges::stable_sort(with, {}, tag);
  std::vector<Elements> all;
  std::ranges::transform(with, std::back_inserter(all), elements);
  return all;
}

void copy_on(Stream& stream, ConstElements data, Elements into) {
  if (data.region.bytes != into.region.bytes)
    throw Error(ErrorKind::invalid_input, "sendrecv with this rank itself: arrays of two sizes");
  if (data.region.bytes != 0) stream.copy(into.region, data.region);
}

}  // namespace

GpuCalls::GpuCalls(HostCollectives& hosts, GroupMessages& messages, std::shared_ptr<ExposedMemory> exposed)
    : hosts_(hosts), messages_(messages), session_(hosts.session()), exposed_(std::move(exposed)) {}

// The child of a fork leaves the parent's GPU alone.
GpuCalls::~GpuCalls() {
  if (session_.is_forked() && on_gpus_) static_cast<void>(new std::shared_ptr<GpuCollectives>(std::move(on_gpus_)));
}

std::string GpuCalls::why_staged() const {
  const std::string why = on_gpus_ ? on_gpus_->why_no_kernels() : "";
  const std::string network = why_no_network_for_nccl(session_.within_a_machine(), session_.encrypts());
  return why.empty() || network.empty() ? why : why + "; " + network;
}

void GpuCalls::set_way(std::optional<GpuAlgorithm> way) {
  way_ = way;
  if (on_gpus_) on_gpus_->set_way(way);
}

GpuCollectives& GpuCalls::gpus_of(Place gpu, bool capturing) {
  if (!on_gpus_) {
    if (capturing)
      throw Error(ErrorKind::unavailable,
                  "the first collective of a group on GPUs sets them up and cannot be captured: call it once before");
    on_gpus_ = std::make_shared<GpuCollectives>(hosts_, session_, hosts_.members(), gpu, exposed_);
    on_gpus_->set_way(way_);
  }
  if (on_gpus_->gpu() != gpu)
    throw Error(ErrorKind::invalid_input,
                "arrays of " + text(gpu) + ": the collectives of this group use " + text(on_gpus_->gpu()));
  return *on_gpus_;
}

bool GpuCalls::collective(const Call& call, const CollectiveCall& wanted, ConstElements input, Elements output,
                          Stream* stream) {
  if (!go_as_messages(wanted)) return by_kernels(call, wanted, input, output, stream);
  return stream != nullptr && by_messages(call, wanted, input, output, *stream);
}

void GpuCalls::prepare(Place gpu, Bytes largest) { gpus_of(gpu, false).prepare(hosts_, hosts_.members(), largest); }

// Arrays of GPUs at all ranks: a call that has them on the host at some is found out by those that wait.
bool GpuCalls::by_kernels(const Call& call, const CollectiveCall& wanted, ConstElements input, Elements output,
                          Stream* stream) {
  const Place place = output.region.place;
  if (!place.is_gpu() || !input.region.place.is_gpu()) return false;
  if (wanted.count == 0 && wanted.operation != Collective::barrier) return false;
  const bool capturing = stream != nullptr && stream->capturing();
  GpuCollectives& gpus = gpus_of(place, capturing);
  CollectiveCall complete = wanted;
  complete.rank = hosts_.rank();
  complete.ranks = hosts_.size();
  const std::optional<GpuAlgorithm> way = gpus.way_for(hosts_, hosts_.members(), call, complete, capturing);
  if (!way) return false;
  const InCall in_call(session_, call);
  if (gpus.is_compared_by_host(*way, complete.ranks)) gpus.compare_by_host(hosts_.shared_members(), call);
  gpus.enqueue(call, *way, complete, input.region, output.region, stream != nullptr ? *stream : gpus.stream());
  if (stream == nullptr) finish(gpus, gpus.stream(), call);
  return true;
}

// Until the stream is through. Whoever has not come is named by the kernel that has waited for it, which has trapped;
// the host gives up a little later. When it fails, this rank touches the caller's memory no more.
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
  } catch (const Error&) {
    fail_with_reason();
    gpus.stop(stream);
    throw;
  }
  fail_with_reason();
}

void GpuCalls::before_hosts(const Call& call, Stream& stream) {
  if (stream.capturing())
    throw Error(ErrorKind::unavailable, text(call) + " goes through the host, which no graph can capture" +
                                            (why_staged().empty() ? "" : ": " + why_staged()));
  synchronize(stream);
}

void GpuCalls::synchronize(Stream& stream) {
  const Call call = hosts_.next_call(CallKind::wait, {});
  if (on_gpus_) return finish(*on_gpus_, stream, call);
  stream.synchronize(Deadline::in(session_.timeout()));
}

void GpuCalls::start(DeviceExecution& prepared, Stream* stream) {
  on_gpus_->enqueue_prepared(prepared, stream != nullptr ? *stream : on_gpus_->stream());
}

void GpuCalls::synchronize() { synchronize(on_gpus_->stream()); }

void GpuCalls::end_prepared() noexcept { on_gpus_->end_prepared(); }

// Each rank's block straight to where it belongs.
bool GpuCalls::by_messages(const Call& call, const CollectiveCall& wanted, ConstElements input, Elements output,
                           Stream& stream) {
  const auto ranks = static_cast<std::size_t>(hosts_.size());
  const Counts counts = wanted.counts.empty() ? Counts(ranks, wanted.count) : wanted.counts;
  const bool root = hosts_.rank() == wanted.root;
  const ConstRegion in = input.region;
  const Region out = output.region;
  switch (wanted.operation) {
    case Collective::gather:
      return exchange_blocks(call, only_for(wanted.root, in, hosts_.size()),
                             root ? blocks_of(out, counts, call.type) : std::vector<Region>(ranks), stream);
    case Collective::scatter:
      return exchange_blocks(call, root ? blocks_of(in, counts, call.type) : std::vector<ConstRegion>(ranks),
                             only_for(wanted.root, out, hosts_.size()), stream);
    case Collective::all_gather:
      return exchange_blocks(call, std::vector<ConstRegion>(ranks, in), blocks_of(out, counts, call.type), stream);
    default:
      return exchange_blocks(call, blocks_of(in, counts, call.type), blocks_of(out, wanted.receive_counts, call.type),
                             stream);
  }
}

bool GpuCalls::exchange_blocks(const Call& call, const std::vector<ConstRegion>& give, const std::vector<Region>& take,
                               Stream& stream) {
  const auto given = [&](std::size_t rank) { return ConstElements(give[rank], call.type); };
  const auto taken = [&](std::size_t rank) { return Elements(take[rank], call.type); };
  if (std::ranges::any_of(give, on_host) || std::ranges::any_of(take, on_host))
    throw Error(ErrorKind::invalid_input, text(call) + ": an array of the host on a GPU's stream");
  const ConstRegion own = give[static_cast<std::size_t>(hosts_.rank())];
  for (const Region& taken_there : take)
    if (taken_there.data != own.data &&
        std::ranges::any_of(give, [&](const ConstRegion& each) { return overlap(taken_there, each); }))
      throw Error(ErrorKind::invalid_input, text(call) + " on a stream: input and output overlap");
  GpuCollectives& gpus = gpus_of(stream.place(), stream.capturing());
  if (!gpus.why_no_kernels().empty()) return false;
  const InCall in_call(session_, call);
  const auto me = static_cast<std::size_t>(hosts_.rank()), ranks = static_cast<std::size_t>(hosts_.size());
  if (give[me].bytes != 0 && give[me].data != take[me].data) stream.copy(take[me], give[me]);
  std::vector<PeerMessage> messages;
  for (std::size_t distance = 1; distance < ranks; ++distance) {
    const std::size_t peer = (me + distance) % ranks;
    messages.push_back({static_cast<int>(peer), given(peer), taken(peer)});
  }
  gpus.enqueue_messages(messages, stream);
  return true;
}

bool GpuCalls::exchange_by_kernels(const Call& call, std::span<const Exchange> neighbors, Stream& stream) {
  if (!on_gpus_) throw_no_gpus(call);
  if (!on_gpus_->why_no_kernels().empty() || hosts_.size() == 1) return false;
  const InCall in_call(session_, call);
  std::vector<PeerMessage> messages;
  for (int distance = 0; distance < hosts_.size(); ++distance) {
    const int peer = (hosts_.rank() + distance) % hosts_.size();
    const std::vector<ConstElements> gives = exchanged_with(peer, neighbors, &Exchange::give_tag, &Exchange::give);
    const std::vector<Elements> takes = exchanged_with(peer, neighbors, &Exchange::take_tag, &Exchange::take);
    if (distance == 0 && gives.size() != takes.size())
      throw Error(ErrorKind::invalid_input, text(call) + ": not as much given to this rank itself as taken from it");
    for (std::size_t i = 0; i < std::max(gives.size(), takes.size()); ++i) {
      const ConstElements give = i < gives.size() ? gives[i] : ConstElements();
      const Elements take = i < takes.size() ? takes[i] : Elements();
      if (distance == 0)
        copy_on(stream, give, take);
      else
        messages.push_back({peer, give, take});
    }
  }
  on_gpus_->enqueue_messages(messages, stream);
  return true;
}

bool GpuCalls::message(const Call& call, ConstElements data, int to, Elements into, int from, Stream& stream) {
  hosts_.check_rank(to, "send to");
  hosts_.check_rank(from, "recv from");
  if (!on_gpus_) throw_no_gpus(call);
  if (on_host(data.region) || on_host(into.region))
    throw Error(ErrorKind::invalid_input, text(call) + ": an array of the host on a GPU's stream");
  if (!on_gpus_->why_no_kernels().empty() || hosts_.size() == 1) return false;
  const InCall in_call(session_, call);
  on_gpus_->enqueue_message(data, to, into, from, stream);
  return true;
}

void GpuCalls::send(ConstElements data, int to, Stream& stream) {
  if (to == hosts_.rank()) throw Error(ErrorKind::invalid_input, "send on a stream to this rank itself: use sendrecv");
  const Call call = hosts_.next_call(CallKind::send, data, to);
  if (message(call, data, to, {}, to, stream)) return;
  before_hosts(call, stream);
  messages_.send(data, to, stream_label);
}

void GpuCalls::recv(Elements data, int from, Stream& stream) {
  if (from == hosts_.rank())
    throw Error(ErrorKind::invalid_input, "recv on a stream from this rank itself: use sendrecv");
  const Call call = hosts_.next_call(CallKind::recv, data, from);
  if (message(call, {}, from, data, from, stream)) return;
  before_hosts(call, stream);
  messages_.recv(data, from, stream_label);
}

void GpuCalls::sendrecv(ConstElements data, int to, Elements into, int from, Stream& stream) {
  const Call call = hosts_.next_call(CallKind::send, data, to);
  if ((to == hosts_.rank()) != (from == hosts_.rank()))
    throw Error(ErrorKind::invalid_input, text(call) + " on a stream: with this rank itself, or with others");
  if (overlap(data.region, into.region))
    throw Error(ErrorKind::invalid_input, "sendrecv on a stream: the two arrays overlap");
  if (to == hosts_.rank()) return copy_on(stream, data, into);
  if (message(call, data, to, into, from, stream)) return;
  before_hosts(call, stream);
  messages_.sendrecv(data, to, into, from, stream_label);
}

void GpuCalls::exchange(std::span<const Exchange> neighbors, Stream& stream) {
  messages_.check_exchange(neighbors);
  if (neighbors.empty()) return;
  const Call call = hosts_.next_call(CallKind::sendrecv, neighbors.front().give, neighbors.front().rank);
  for (const Exchange& each : neighbors)
    if (on_host(each.give.region) || on_host(each.take.region))
      throw Error(ErrorKind::invalid_input, "neighbor_exchange: an array of the host on a GPU's stream");
  if (exchange_by_kernels(call, neighbors, stream)) return;
  before_hosts(call, stream);
  messages_.exchange(neighbors);
}

}  // namespace waywiser
