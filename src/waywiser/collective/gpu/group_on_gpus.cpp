// The calls of a Group (comm/group.hpp) that GPUs carry out by themselves.
#include <algorithm>

#include "waywiser/base/error.hpp"
#include "waywiser/collective/gpu/gpu_collectives.hpp"
#include "waywiser/collective/nccl/nccl_network.hpp"
#include "waywiser/comm/group.hpp"
#include "waywiser/comm/tag.hpp"

namespace waywiser {
namespace {

// Of messages on streams that take the host's way: no message of a user has this one.
constexpr int stream_label = largest_label;
// After the timeout, in which kernels say themselves whom they have waited for.
constexpr Seconds kernels_speak = 2;

// The blocks that lie one after the other in an array.
template <typename Region>
std::vector<Region> blocks_of(const Region& array, const std::vector<std::size_t>& counts, DataType type) {
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

}  // namespace

std::string Group::why_staged() const {
  const std::string why = on_gpus_ ? on_gpus_->why_no_kernels() : "";
  const std::string network = why_no_network_for_nccl(session_->within_a_machine(), session_->encrypts());
  return why.empty() || network.empty() ? why : why + "; " + network;
}

void Group::set_way(std::string_view way) {
  way_ = way;
  schedules_ = {};
  if (on_gpus_) on_gpus_->set_way(parse_gpu_way(way));
}

GpuCollectives& Group::gpu_collectives(Place gpu, bool capturing) {
  if (!on_gpus_) {
    if (capturing)
      throw Error(ErrorKind::unavailable,
                  "the first collective of a group on GPUs sets them up and cannot be captured: call it once before");
    on_gpus_ = std::make_shared<GpuCollectives>(*this, *session_, *members_, gpu, exposed_);
    on_gpus_->set_way(parse_gpu_way(way_));
  }
  if (on_gpus_->gpu() != gpu)
    throw Error(ErrorKind::invalid_input,
                "arrays of " + text(gpu) + ": the collectives of this group use " + text(on_gpus_->gpu()));
  return *on_gpus_;
}

// Arrays of GPUs at all ranks: a call that has them on the host at some is found out by those that wait.
bool Group::done_by_gpus(const Call& call, const CollectiveCall& wanted, ConstElements input, Elements output,
                         Stream* stream) {
  if (begins_ != nullptr) return false;
  const Place place = output.region.place;
  if (!place.is_gpu() || !input.region.place.is_gpu()) return false;
  if (wanted.count == 0 && wanted.operation != Collective::barrier) return false;
  const bool capturing = stream != nullptr && stream->capturing();
  GpuCollectives& gpus = gpu_collectives(place, capturing);
  CollectiveCall complete = wanted;
  complete.rank = rank();
  complete.ranks = size();
  if (!gpus.serves(*this, *members_, call, complete, capturing)) return false;
  session_->begin(call);
  if (gpus.is_compared_by_host(complete, call.type)) gpus.compare_by_host(members_, call);
  gpus.enqueue(call, complete, input.region, output.region, stream != nullptr ? *stream : gpus.stream());
  if (stream == nullptr) finish_on(gpus, gpus.stream(), call);
  session_->end();
  return true;
}

// Until the stream is through. Whoever has not come is named by the kernel that has waited for it, which has trapped;
// the host gives up a little later. When it fails, this rank touches the caller's memory no more.
void Group::finish_on(GpuCollectives& gpus, Stream& stream, const Call& call) {
  const auto fail_with_reason = [&] {
    try {
      gpus.check();
    } catch (const Error& error) {
      gpus.stop(stream);
      session_->fail(error.kind(), text(call) + ": " + error.what());
    }
  };
  try {
    session_->wait(
        call, [&] { return stream.done() && !gpus.is_comparing(); },
        [] { return std::string("the GPU has not finished"); }, kernels_speak);
  } catch (const Error&) {
    fail_with_reason();
    gpus.stop(stream);
    throw;
  }
  fail_with_reason();
}

// A call that the host carries out in the place of the stream.
void Group::before_host_call(const Call& call, Stream* stream) {
  if (stream == nullptr) return;
  if (stream->capturing())
    throw Error(ErrorKind::unavailable, text(call) + " goes through the host, which no graph can capture" +
                                            (why_staged().empty() ? "" : ": " + why_staged()));
  synchronize(*stream);
}

void Group::synchronize(Stream& stream) {
  const Call call = next_call(CallKind::wait, {}, -1);
  if (on_gpus_) return finish_on(*on_gpus_, stream, call);
  stream.synchronize(Deadline::in(timeout()));
}

bool Group::exchanged_by_gpus(const Call& call, const std::vector<ConstRegion>& give, const std::vector<Region>& take,
                              Stream& stream) {
  const auto given = [&](std::size_t rank) { return ConstElements(give[rank], call.type); };
  const auto taken = [&](std::size_t rank) { return Elements(take[rank], call.type); };
  if (std::ranges::any_of(give, on_host) || std::ranges::any_of(take, on_host))
    throw Error(ErrorKind::invalid_input, text(call) + ": an array of the host on a GPU's stream");
  const ConstRegion own = give[static_cast<std::size_t>(rank())];
  for (const Region& taken_there : take)
    if (taken_there.data != own.data &&
        std::ranges::any_of(give, [&](const ConstRegion& each) { return overlap(taken_there, each); }))
      throw Error(ErrorKind::invalid_input, text(call) + " on a stream: input and output overlap");
  GpuCollectives& gpus = gpu_collectives(stream.place(), stream.capturing());
  if (!gpus.why_no_kernels().empty()) return false;
  session_->begin(call);
  const auto me = static_cast<std::size_t>(rank()), ranks = static_cast<std::size_t>(size());
  if (give[me].bytes != 0 && give[me].data != take[me].data) stream.copy(take[me], give[me]);
  for (std::size_t distance = 1; distance < ranks; ++distance) {
    const std::size_t to = (me + distance) % ranks, from = (me + ranks - distance) % ranks;
    gpus.enqueue_message(given(to), static_cast<int>(to), taken(from), static_cast<int>(from), stream);
  }
  session_->end();
  return true;
}

bool Group::all_gathered_by_gpus(const Call& call, ConstElements input, Elements output,
                                 const std::vector<std::size_t>& counts, Stream& stream) {
  return exchanged_by_gpus(call, std::vector<ConstRegion>(counts.size(), input.region),
                           blocks_of(output.region, counts, input.type), stream);
}

bool Group::shuffled_by_gpus(const Call& call, ConstElements input, const std::vector<std::size_t>& give,
                             Elements output, const std::vector<std::size_t>& take, Stream& stream) {
  return exchanged_by_gpus(call, blocks_of(input.region, give, input.type), blocks_of(output.region, take, input.type),
                           stream);
}

bool Group::gathered_by_gpus(const Call& call, ConstElements input, Elements output,
                             const std::vector<std::size_t>& counts, Stream& stream) {
  const bool root = rank() == call.root;
  return exchanged_by_gpus(call, only_for(call.root, input.region, size()),
                           root ? blocks_of(output.region, counts, input.type) : std::vector<Region>(counts.size()),
                           stream);
}

bool Group::scattered_by_gpus(const Call& call, ConstElements input, const std::vector<std::size_t>& counts,
                              Elements output, Stream& stream) {
  const bool root = rank() == call.root;
  return exchanged_by_gpus(
      call, root ? blocks_of(input.region, counts, output.type) : std::vector<ConstRegion>(counts.size()),
      only_for(call.root, output.region, size()), stream);
}

// All ranks go around in the same order, so that what one gives at a distance is taken by the other at the same time.
bool Group::neighbors_by_gpus(const Call& call, std::span<const Exchange> neighbors, Stream& stream) {
  if (!on_gpus_) throw_no_gpus(call);
  if (!on_gpus_->why_no_kernels().empty() || size() == 1) return false;
  session_->begin(call);
  for (int distance = 0; distance < size(); ++distance) {
    const int to = (rank() + distance) % size(), from = (rank() + size() - distance) % size();
    const std::vector<ConstElements> gives = exchanged_with(to, neighbors, &Exchange::give_tag, &Exchange::give);
    const std::vector<Elements> takes = exchanged_with(from, neighbors, &Exchange::take_tag, &Exchange::take);
    if (distance == 0 && gives.size() != takes.size())
      throw Error(ErrorKind::invalid_input, text(call) + ": not as much given to this rank itself as taken from it");
    for (std::size_t i = 0; i < std::max(gives.size(), takes.size()); ++i) {
      const ConstElements give = i < gives.size() ? gives[i] : ConstElements();
      const Elements take = i < takes.size() ? takes[i] : Elements();
      if (distance == 0)
        copy_on(stream, give, take);
      else
        on_gpus_->enqueue_message(give, to, take, from, stream);
    }
  }
  session_->end();
  return true;
}

bool Group::message_by_gpus(const Call& call, ConstElements data, int to, Elements into, int from, Stream& stream) {
  check_peer(to, "send to");
  check_peer(from, "recv from");
  if (!on_gpus_) throw_no_gpus(call);
  if (on_host(data.region) || on_host(into.region))
    throw Error(ErrorKind::invalid_input, text(call) + ": an array of the host on a GPU's stream");
  if (!on_gpus_->why_no_kernels().empty() || size() == 1) return false;
  session_->begin(call);
  on_gpus_->enqueue_message(data, to, into, from, stream);
  session_->end();
  return true;
}

void Group::send(ConstElements data, int to, Stream& stream) {
  if (to == rank()) throw Error(ErrorKind::invalid_input, "send on a stream to this rank itself: use sendrecv");
  const Call call = next_call(CallKind::send, data, to);
  if (message_by_gpus(call, data, to, {}, to, stream)) return;
  before_host_call(call, &stream);
  send_labelled(data, to, stream_label);
}

void Group::recv(Elements data, int from, Stream& stream) {
  if (from == rank()) throw Error(ErrorKind::invalid_input, "recv on a stream from this rank itself: use sendrecv");
  const Call call = next_call(CallKind::recv, data, from);
  if (message_by_gpus(call, {}, from, data, from, stream)) return;
  before_host_call(call, &stream);
  recv_labelled(data, from, stream_label);
}

void Group::sendrecv(ConstElements data, int to, Elements into, int from, Stream& stream) {
  const Call call = next_call(CallKind::send, data, to);
  if ((to == rank()) != (from == rank()))
    throw Error(ErrorKind::invalid_input, text(call) + " on a stream: with this rank itself, or with others");
  if (overlap(data.region, into.region))
    throw Error(ErrorKind::invalid_input, "sendrecv on a stream: the two arrays overlap");
  if (to == rank()) return copy_on(stream, data, into);
  if (message_by_gpus(call, data, to, into, from, stream)) return;
  before_host_call(call, &stream);
  sendrecv_labelled(data, to, into, from, stream_label);
}

void Group::neighbor_exchange(std::span<const Exchange> neighbors, Stream& stream) {
  check_neighbors(neighbors);
  if (neighbors.empty()) return;
  const Call call = next_call(CallKind::sendrecv, neighbors.front().give, neighbors.front().rank);
  for (const Exchange& each : neighbors)
    if (on_host(each.give.region) || on_host(each.take.region))
      throw Error(ErrorKind::invalid_input, "neighbor_exchange: an array of the host on a GPU's stream");
  if (neighbors_by_gpus(call, neighbors, stream)) return;
  before_host_call(call, &stream);
  neighbor_exchange(neighbors);
}

void Group::copy_on(Stream& stream, ConstElements data, Elements into) {
  if (data.region.bytes != into.region.bytes)
    throw Error(ErrorKind::invalid_input, "sendrecv with this rank itself: arrays of two sizes");
  if (data.region.bytes != 0) stream.copy(into.region, data.region);
}

}  // namespace waywiser
