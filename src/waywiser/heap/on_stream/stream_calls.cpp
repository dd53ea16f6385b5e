#include "waywiser/heap/heap_state.hpp"
#include "waywiser/heap/on_stream/enqueue_heap_call.hpp"
#include "waywiser/heap/on_stream/stream_call.hpp"

namespace waywiser {
namespace {

using one_sided::StreamCall;

void check_word(const Heap& heap, Bytes offset) {
  if (offset % sizeof(std::uint64_t) != 0 || offset > heap.local().bytes ||
      heap.local().bytes - offset < sizeof(std::uint64_t))
    throw Error(ErrorKind::invalid_input, "heap '" + heap.name() + "': a signal at offset " + std::to_string(offset) +
                                              ": it needs 8 aligned bytes of " + std::to_string(heap.local().bytes));
}

void enqueue(const Heap& heap, Stream& stream, const StreamCall& call) {
  enqueue_heap_call(heap, stream, call, [](auto& gpu, const StreamCall& to_run) { run_stream_call(gpu, to_run); });
}

}  // namespace

void Heap::put(Stream& stream, ConstRegion data, int to, Bytes offset) const {
  const auto alone = held().alone();
  if (why_proxied(to).empty()) return stream.copy(peer(to).slice(offset, data.bytes), data);
  if (offset > local().bytes || data.bytes > local().bytes - offset)
    throw Error(ErrorKind::invalid_input, "heap '" + name() + "': " + std::to_string(data.bytes) + " bytes at offset " +
                                              std::to_string(offset) + " of " + std::to_string(local().bytes));
  StreamCall call;
  call.kind = StreamCall::Kind::put;
  call.data = stream.reach(data);
  call.offset = offset;
  call.value = data.bytes;
  call.rank = to;
  enqueue(*this, stream, call);
}

void Heap::get(Stream& stream, Region data, int from, Bytes offset) const {
  const auto alone = held().alone();
  stream.copy(data, peer(from).slice(offset, data.bytes));
}

void Heap::signal(Stream& stream, int to, Bytes offset, std::uint64_t value, one_sided::SignalOp op) const {
  const auto alone = held().alone();
  check_word(*this, offset);
  static_cast<void>(why_proxied(to));
  StreamCall call;
  call.kind = StreamCall::Kind::signal;
  call.offset = offset;
  call.value = value;
  call.op = op;
  call.rank = to;
  enqueue(*this, stream, call);
}

void Heap::wait(Stream& stream, Bytes offset, one_sided::Comparison comparison, std::uint64_t value, int from) const {
  const auto alone = held().alone();
  check_word(*this, offset);
  StreamCall call;
  call.kind = StreamCall::Kind::wait;
  call.offset = offset;
  call.value = value;
  call.comparison = comparison;
  call.rank = from;
  enqueue(*this, stream, call);
}

void Heap::wait_and_take(Stream& stream, Bytes offset, std::uint64_t count, int from) const {
  const auto alone = held().alone();
  check_word(*this, offset);
  StreamCall call;
  call.kind = StreamCall::Kind::wait_and_take;
  call.offset = offset;
  call.value = count;
  call.comparison = one_sided::Comparison::ge;
  call.rank = from;
  enqueue(*this, stream, call);
}

void Heap::barrier(Stream& stream, const HeapTeam& team) const {
  const auto alone = held().alone();
  StreamCall call;
  call.kind = StreamCall::Kind::barrier;
  call.team = team.terms();
  enqueue(*this, stream, call);
}

}  // namespace waywiser
