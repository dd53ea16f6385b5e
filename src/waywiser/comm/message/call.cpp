#include "waywiser/comm/message/call.hpp"

namespace waywiser {
namespace {

constexpr std::array<std::string_view, call_kinds> call_names{
    "nothing",    "send",         "recv",       "sendrecv",   "put",
    "get",        "signal",       "wait",       "probe",      "barrier",
    "broadcast",  "reduce",       "all_reduce", "all_gather", "reduce_scatter",
    "all_to_all", "all_to_all_v", "gather",     "scatter",    "neighbor_exchange",
    "split",      "expose",       "leave",      "scan",       "exscan"};

bool reduces(CallKind kind) {
  return kind == CallKind::reduce || kind == CallKind::all_reduce || kind == CallKind::reduce_scatter ||
         kind == CallKind::scan || kind == CallKind::exscan;
}

std::string peer_text(const Call& call) {
  if (call.peer < 0) return takes_from_any(call) ? " from any rank" : "";
  const bool from = call.kind == CallKind::recv || call.kind == CallKind::probe || call.kind == CallKind::get;
  return (from ? " from rank " : " to rank ") + std::to_string(call.peer);
}

// Calls whose counts may differ between ranks.
bool counts_agree(const Call& a, const Call& b) {
  const bool own_count =
      a.kind == CallKind::neighbor_exchange || a.kind == CallKind::expose || a.kind == CallKind::all_to_all_v;
  return own_count || a.count == b.count;
}

bool fit(const Call& a, const Call& b) {
  return a.kind == b.kind && a.type == b.type && (!reduces(a.kind) || a.op == b.op) && a.root == b.root &&
         counts_agree(a, b);
}

}  // namespace

std::string_view name(CallKind kind) noexcept { return call_names[static_cast<std::size_t>(kind)]; }

std::string text(const Call& call) {
  if (call.kind == CallKind::none) return "nothing";
  std::string text = std::string(name(call.kind)) + " #" + std::to_string(call.sequence);
  const bool sized = call.kind != CallKind::probe && call.kind != CallKind::barrier && call.kind != CallKind::split &&
                     call.kind != CallKind::leave;
  if (sized) text += " of " + std::to_string(call.count) + " " + std::string(name(call.type));
  text += peer_text(call);
  if (reduces(call.kind)) text += ", " + std::string(name(call.op));
  if (call.root >= 0) text += ", root " + std::to_string(call.root);
  if (call.group != 0) text += ", group " + std::to_string(call.group >> 16);
  if (call.peer_in_job >= 0 && call.peer_in_job != call.peer)
    text += " (rank " + std::to_string(call.peer_in_job) + " of the job)";
  return text;
}

void write(WireWriter& writer, const Call& call) {
  writer.number(static_cast<std::uint8_t>(call.kind));
  writer.number(static_cast<std::uint8_t>(call.type));
  writer.number(static_cast<std::uint8_t>(call.op));
  writer.number(call.group);
  writer.number(static_cast<std::uint32_t>(call.root));
  writer.number(static_cast<std::uint32_t>(call.peer));
  writer.number(call.sequence);
  writer.number(call.count);
  writer.number(static_cast<std::uint32_t>(call.peer_in_job));
}

Call read_call(WireReader& reader) {
  const auto kind = reader.number<std::uint8_t>();
  const auto type = reader.number<std::uint8_t>();
  const auto op = reader.number<std::uint8_t>();
  if (kind >= call_kinds || type >= data_types || op >= reduce_ops) reader.refuse("it names an unknown call");
  Call call{static_cast<CallKind>(kind), static_cast<DataType>(type), static_cast<ReduceOp>(op)};
  call.group = reader.number<std::uint32_t>();
  call.root = static_cast<std::int32_t>(reader.number<std::uint32_t>());
  call.peer = static_cast<std::int32_t>(reader.number<std::uint32_t>());
  call.sequence = reader.number<std::uint64_t>();
  call.count = reader.number<std::uint64_t>();
  call.peer_in_job = static_cast<std::int32_t>(reader.number<std::uint32_t>());
  return call;
}

std::string difference(int rank, const Call& call, int other_rank, const Call& other) {
  if (call.group != other.group || call.sequence != other.sequence || fit(call, other)) return {};
  return "rank " + std::to_string(rank) + " is in " + text(call) + ", but rank " + std::to_string(other_rank) +
         " is in " + text(other);
}

// One writer. Readers retry if it was writing.
void CurrentCall::set(const Call& call) noexcept {
  const std::uint32_t version = version_.load(std::memory_order_relaxed);
  version_.store(version + 1, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_release);
  const auto put = [this](std::size_t i, std::uint64_t word) { words_[i].store(word, std::memory_order_relaxed); };
  put(0, static_cast<std::uint64_t>(call.kind) | static_cast<std::uint64_t>(call.type) << 8 |
             static_cast<std::uint64_t>(call.op) << 16 | std::uint64_t{call.group} << 32);
  put(1, static_cast<std::uint32_t>(call.root) | std::uint64_t{static_cast<std::uint32_t>(call.peer)} << 32);
  put(2, call.sequence);
  put(3, call.count);
  put(4, static_cast<std::uint32_t>(call.peer_in_job));
  version_.store(version + 2, std::memory_order_release);
}

Call CurrentCall::get() const noexcept {
  for (;;) {
    const std::uint32_t before = version_.load(std::memory_order_acquire);
    std::array<std::uint64_t, 5> words{};
    for (std::size_t i = 0; i < words.size(); ++i) words[i] = words_[i].load(std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_acquire);
    if (before % 2 != 0 || before != version_.load(std::memory_order_relaxed)) continue;
    return {static_cast<CallKind>(words[0] & 0xff),
            static_cast<DataType>(words[0] >> 8 & 0xff),
            static_cast<ReduceOp>(words[0] >> 16 & 0xff),
            static_cast<std::uint32_t>(words[0] >> 32),
            static_cast<std::int32_t>(words[1]),
            static_cast<std::int32_t>(words[1] >> 32),
            words[2],
            words[3],
            static_cast<std::int32_t>(words[4])};
  }
}

}  // namespace waywiser
