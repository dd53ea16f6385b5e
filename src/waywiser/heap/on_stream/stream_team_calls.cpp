#include "waywiser/base/error.hpp"
#include "waywiser/comm/session/call_arrays.hpp"
#include "waywiser/device/stream.hpp"
#include "waywiser/heap/heap_state.hpp"
#include "waywiser/heap/on_stream/enqueue_heap_call.hpp"
#include "waywiser/heap/on_stream/stream_team_call.hpp"

namespace waywiser {
namespace {

using one_sided::StreamTeamCall, one_sided::TeamOp;

// Parts of the heap of so many bytes. Throws unless they lie in it, apart or as the kind of call permits.
void check_arrays(const Heap& heap, CallKind kind, Bytes destination, Bytes to_bytes, Bytes source, Bytes from_bytes) {
  const Region to = heap.local().slice(destination, to_bytes), from = heap.local().slice(source, from_bytes);
  if (share_memory(from, to) && !may_share(kind, {from, to}))
    throw Error(ErrorKind::invalid_input, "heap '" + heap.name() + "': " + std::to_string(to_bytes) +
                                              " bytes at offset " + std::to_string(destination) + " overlap " +
                                              std::to_string(from_bytes) + " at " + std::to_string(source));
}

Bytes product(const Heap& heap, Bytes bytes, std::uint64_t parts) {
  if (parts != 0 && bytes > heap.local().bytes / parts)
    throw Error(ErrorKind::invalid_input, "heap '" + heap.name() + "': " + std::to_string(parts) + " parts of " +
                                              std::to_string(bytes) + " bytes, and it has " +
                                              std::to_string(heap.local().bytes));
  return bytes * parts;
}

bool is_float(DataType type) {
  return type == DataType::float64 || type == DataType::float32 || type == DataType::float16 ||
         type == DataType::bfloat16;
}

void enqueue(const Heap& heap, Stream& stream, const HeapTeam& team, StreamTeamCall call) {
  call.team = team.terms();
  enqueue_heap_call(heap, stream, call,
                    [](auto& gpu, const StreamTeamCall& to_run) { run_stream_team_call(gpu, to_run); });
}

}  // namespace

void Heap::broadcast(Stream& stream, const HeapTeam& team, Bytes destination, Bytes source, Bytes bytes,
                     int root) const {
  const auto alone = held().alone();
  check_arrays(*this, CallKind::broadcast, destination, bytes, source, bytes);
  if (root < 0 || root >= team.size())
    throw Error(ErrorKind::invalid_input,
                "heap '" + name() + "': root " + std::to_string(root) + " of a team of " + std::to_string(team.size()));
  StreamTeamCall call;
  call.kind = StreamTeamCall::Kind::broadcast;
  call.destination = destination;
  call.source = source;
  call.count = bytes;
  call.root = root;
  enqueue(*this, stream, team, call);
}

void Heap::all_gather(Stream& stream, const HeapTeam& team, Bytes destination, Bytes source, Bytes bytes) const {
  const auto alone = held().alone();
  check_arrays(*this, CallKind::all_gather, destination, product(*this, bytes, static_cast<std::uint64_t>(team.size())),
               source, bytes);
  StreamTeamCall call;
  call.kind = StreamTeamCall::Kind::all_gather;
  call.destination = destination;
  call.source = source;
  call.count = bytes;
  enqueue(*this, stream, team, call);
}

void Heap::all_to_all(Stream& stream, const HeapTeam& team, Bytes destination, Bytes source, Bytes bytes) const {
  const auto alone = held().alone();
  const Bytes all = product(*this, bytes, static_cast<std::uint64_t>(team.size()));
  check_arrays(*this, CallKind::all_to_all, destination, all, source, all);
  StreamTeamCall call;
  call.kind = StreamTeamCall::Kind::all_to_all;
  call.destination = destination;
  call.source = source;
  call.count = bytes;
  enqueue(*this, stream, team, call);
}

void Heap::reduce(Stream& stream, const HeapTeam& team, Bytes destination, Bytes source, std::uint64_t count,
                  DataType type, TeamOp op) const {
  const auto alone = held().alone();
  const Bytes all = product(*this, bytes_of(type), count);
  check_arrays(*this, CallKind::reduce, destination, all, source, all);
  const bool bits = op == TeamOp::bit_and || op == TeamOp::bit_or || op == TeamOp::bit_xor;
  if (is_complex(type) || type == DataType::float8_e4m3fn || type == DataType::float8_e5m2 || (bits && is_float(type)))
    throw Error(ErrorKind::invalid_input, "heap '" + this->name() + "': a team cannot combine " +
                                              std::string(waywiser::name(type)) + (bits ? " by its bits" : ""));
  if (destination % bytes_of(type) != 0 || source % bytes_of(type) != 0)
    throw Error(ErrorKind::invalid_input, "heap '" + this->name() + "': elements of " + std::to_string(bytes_of(type)) +
                                              " bytes at offsets " + std::to_string(destination) + " and " +
                                              std::to_string(source));
  StreamTeamCall call;
  call.kind = StreamTeamCall::Kind::reduce;
  call.destination = destination;
  call.source = source;
  call.count = count;
  call.type = type;
  call.op = op;
  enqueue(*this, stream, team, call);
}

}  // namespace waywiser
