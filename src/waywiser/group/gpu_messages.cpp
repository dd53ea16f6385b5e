// The calls of GpuCalls that go as messages, each pair of ranks by itself.
#include <algorithm>
#include <iterator>

#include "waywiser/base/error.hpp"
#include "waywiser/collective/gpu/stream_operations.hpp"
#include "waywiser/collective/proxy/proxied_message.hpp"
#include "waywiser/comm/session/call_arrays.hpp"
#include "waywiser/comm/session/in_call.hpp"
#include "waywiser/group/gpu_calls.hpp"

namespace waywiser {
namespace {

using Counts = std::vector<std::size_t>;

// The consecutive blocks of an array.
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

// One block for one rank, none for the others.
template <typename Region>
std::vector<Region> only_for(int rank, const Region& block, int ranks) {
  std::vector<Region> blocks(static_cast<std::size_t>(ranks));
  blocks[static_cast<std::size_t>(rank)] = block;
  return blocks;
}

bool on_host(const ConstRegion& region) { return region.bytes != 0 && !region.place.is_gpu(); }

void check_place(const Call& call, const ConstRegion& region) {
  if (on_host(region)) throw Error(ErrorKind::invalid_input, text(call) + ": an array of the host on a GPU's stream");
}

// What is exchanged with one rank, ordered by tag, as the other side orders it too.
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

// Sends each rank's block directly to its destination.
void GpuCalls::by_messages(const CollectiveCall& wanted, ConstElements input, Elements output, Stream& stream) {
  const Call& call = wanted.as;
  const auto ranks = static_cast<std::size_t>(core_.size());
  const Counts counts = wanted.counts.empty() ? Counts(ranks, wanted.count) : wanted.counts;
  const bool root = core_.rank() == wanted.root;
  const ConstRegion in = input.region;
  const Region out = output.region;
  switch (wanted.operation) {
    case Collective::gather:
      return exchange_blocks(call, only_for(wanted.root, in, core_.size()),
                             root ? blocks_of(out, counts, call.type) : std::vector<Region>(ranks), stream);
    case Collective::scatter:
      return exchange_blocks(call, root ? blocks_of(in, counts, call.type) : std::vector<ConstRegion>(ranks),
                             only_for(wanted.root, out, core_.size()), stream);
    case Collective::all_gather:
      return exchange_blocks(call, std::vector<ConstRegion>(ranks, in), blocks_of(out, counts, call.type), stream);
    default: {
      const Counts& taken = wanted.counts.empty() ? counts : wanted.receive_counts;
      return exchange_blocks(call, blocks_of(in, counts, call.type), blocks_of(out, taken, call.type), stream);
    }
  }
}

void GpuCalls::exchange_blocks(const Call& call, const std::vector<ConstRegion>& give, const std::vector<Region>& take,
                               Stream& stream) {
  if (std::ranges::any_of(give, on_host) || std::ranges::any_of(take, on_host))
    throw Error(ErrorKind::invalid_input, text(call) + ": an array of the host on a GPU's stream");
  const auto me = static_cast<std::size_t>(core_.rank()), ranks = static_cast<std::size_t>(core_.size());
  static_cast<void>(gpus_on(stream));
  const OwnBlock own = give[me].data == take[me].data ? OwnBlock() : OwnBlock{give[me], take[me]};
  std::vector<PeerMessage> messages;
  for (std::size_t distance = 1; distance < ranks; ++distance) {
    const std::size_t peer = (me + distance) % ranks;
    messages.push_back({static_cast<int>(peer), {give[peer], call.type}, {take[peer], call.type}});
  }
  exchange_messages(call, std::move(messages), own, stream);
}

// The call of one message within an exchange. Both ends of the message have the same number of bytes, or none.
Call GpuCalls::message_call(const Call& call, CallKind kind, const ConstElements& data, int peer) const {
  Call message{kind, data.type};
  message.group = call.group;
  message.peer = peer;
  message.peer_in_job = static_cast<int>(core_.members().peer(peer));
  message.sequence = call.sequence;
  message.count = data.count();
  return message;
}

// Takes out the messages that no kernel serves; receives come first, so that arriving messages find their buffers.
ProxyOperation::Parts GpuCalls::take_out(const Call& call, std::vector<PeerMessage>& messages, std::string& why) {
  const KernelDomain& domain = on_gpus_->domain();
  const auto by_hosts = [&](const PeerMessage& each) { return !domain.reaches(each.rank); };
  ProxyOperation::Parts parts;
  for (const auto& [rank, give, take] : messages)
    if (!domain.reaches(rank) && take.region.bytes != 0)
      parts.push_back(std::make_unique<ProxiedReceive>(session_, core_.shared_members(),
                                                       message_call(call, CallKind::recv, take, rank), take));
  for (const auto& [rank, give, take] : messages)
    if (!domain.reaches(rank) && give.region.bytes != 0)
      parts.push_back(std::make_unique<ProxiedSend>(session_, core_.shared_members(),
                                                    message_call(call, CallKind::send, give, rank), give));
  const auto first = std::ranges::find_if(messages, by_hosts);
  if (first != messages.end()) why = domain.why_not(first->rank);
  std::erase_if(messages, by_hosts);
  return parts;
}

// Messages that a kernel serves go by kernels, with what stays here; at the same time the hosts carry the others.
void GpuCalls::exchange_messages(const Call& call, std::vector<PeerMessage> messages, OwnBlock own, Stream& stream) {
  StreamOperations& gpus = gpus_for(call, stream);
  const InCall in_call(session_, call);
  std::string why;
  ProxyOperation::Parts parts = take_out(call, messages, why);
  if (messages.empty() && own.from.bytes != 0) stream.copy(own.to, own.from);
  const auto by_kernels = [&] { gpus.enqueue_messages(messages, own, stream); };
  if (parts.empty()) return by_kernels();
  gpus.enqueue_by_hosts(call, why, std::move(parts), stream,
                        messages.empty() ? std::function<void()>() : std::function<void()>(by_kernels));
}

// The same for one message in each direction, which has a kernel of its own.
void GpuCalls::message(const Call& call, ConstElements data, int to, Elements into, int from, Stream& stream) {
  StreamOperations& gpus = gpus_for(call, stream);
  const InCall in_call(session_, call);
  std::vector<PeerMessage> messages{{to, data, {}}, {from, {}, into}};
  std::string why;
  ProxyOperation::Parts parts = take_out(call, messages, why);
  const ConstElements give = gpus.domain().reaches(to) ? data : ConstElements();
  const Elements take = gpus.domain().reaches(from) ? into : Elements();
  const auto by_kernels = [&] { gpus.enqueue_message(give, to, take, from, stream); };
  if (parts.empty()) return messages.empty() ? void() : by_kernels();
  gpus.enqueue_by_hosts(call, why, std::move(parts), stream,
                        messages.empty() ? std::function<void()>() : std::function<void()>(by_kernels));
}

StreamOperations& GpuCalls::gpus_for(const Call& call, const Stream& stream) {
  if (on_gpus_) return *on_gpus_;
  if (!stream.place().is_gpu())
    throw Error(ErrorKind::invalid_input, text(call) + " on a stream of " + text(stream.place()) + ", not of a GPU");
  set_up(stream.place(), call, &stream);
  return *on_gpus_;
}

void GpuCalls::send(ConstElements data, int to, Stream& stream) {
  core_.check_rank(to, "send to");
  if (to == core_.rank()) throw Error(ErrorKind::invalid_input, "send on a stream to this rank itself: use sendrecv");
  const Call call = core_.next_call(CallKind::send, data, to);
  check_place(call, data.region);
  message(call, data, to, {}, to, stream);
}

void GpuCalls::recv(Elements data, int from, Stream& stream) {
  core_.check_rank(from, "recv from");
  if (from == core_.rank())
    throw Error(ErrorKind::invalid_input, "recv on a stream from this rank itself: use sendrecv");
  const Call call = core_.next_call(CallKind::recv, data, from);
  check_place(call, data.region);
  message(call, {}, from, data, from, stream);
}

void GpuCalls::sendrecv(ConstElements data, int to, Elements into, int from, Stream& stream) {
  core_.check_rank(to, "send to");
  core_.check_rank(from, "recv from");
  const Call call = core_.next_call(CallKind::send, data, to);
  if ((to == core_.rank()) != (from == core_.rank()))
    throw Error(ErrorKind::invalid_input, text(call) + " on a stream: with this rank itself, or with others");
  check_apart(CallKind::sendrecv, {data.region, into.region});
  check_place(call, data.region);
  check_place(call, into.region);
  if (to == core_.rank()) return copy_on(stream, data, into);
  message(call, data, to, into, from, stream);
}

void GpuCalls::exchange(std::span<const Exchange> neighbors, Stream& stream) {
  messages_.check_exchange(neighbors);
  if (neighbors.empty()) return static_cast<void>(gpus_for({CallKind::sendrecv}, stream));
  const Call call = core_.next_call(CallKind::sendrecv, neighbors.front().give, neighbors.front().rank);
  for (const Exchange& each : neighbors) {
    check_place(call, each.give.region);
    check_place(call, each.take.region);
  }
  std::vector<PeerMessage> messages;
  for (int distance = 0; distance < core_.size(); ++distance) {
    const int peer = (core_.rank() + distance) % core_.size();
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
  exchange_messages(call, std::move(messages), {}, stream);
}

}  // namespace waywiser
