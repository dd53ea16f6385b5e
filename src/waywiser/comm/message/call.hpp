#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "waywiser/base/units.hpp"
#include "waywiser/comm/data_type.hpp"
#include "waywiser/comm/message/wire.hpp"

namespace waywiser {

enum class CallKind : std::uint8_t {
  none,  // between two calls
  send,
  recv,
  sendrecv,
  put,
  get,
  signal,
  wait,
  probe,
  barrier,
  broadcast,
  reduce,
  all_reduce,
  all_gather,
  reduce_scatter,
  all_to_all,
  all_to_all_v,
  gather,
  scatter,
  neighbor_exchange,
  split,
  expose,
  leave,
  scan,
  exscan,
};
inline constexpr int call_kinds = 25;
std::string_view name(CallKind kind) noexcept;
constexpr bool is_collective(CallKind kind) noexcept { return kind >= CallKind::barrier; }

// One call of one rank, as it travels in messages and is compared between ranks.
struct Call {
  CallKind kind = CallKind::none;
  DataType type = DataType::uint8;
  ReduceOp op = ReduceOp::sum;
  std::uint32_t group = 0;
  std::int32_t root = -1;         // of a collective with a root
  std::int32_t peer = -1;         // of send, recv, probe, put, get, signal; below 0: any rank
  std::uint64_t sequence = 0;     // counts the calls of the group
  std::uint64_t count = 0;        // elements
  std::int32_t peer_in_job = -1;  // the peer's rank in the job, which a part of it numbers otherwise

  bool operator==(const Call&) const = default;
};
// Whether it waits for a message of any rank.
constexpr bool takes_from_any(const Call& call) noexcept {
  return call.peer < 0 && (call.kind == CallKind::recv || call.kind == CallKind::probe);
}
// "all_reduce #12 of 100 float32, sum", "recv #3 of 8 uint8 from rank 2".
std::string text(const Call& call);

void write(WireWriter& writer, const Call& call);
Call read_call(WireReader& reader);  // throws invalid_input

// How two ranks' calls of the same collective differ, for people; empty: they match.
std::string difference(int rank, const Call& call, int other_rank, const Call& other);

// The call that this rank is in; other threads may read it.
class CurrentCall {
 public:
  void set(const Call& call) noexcept;
  // Sets `none`: the other words are then meaningless.
  void clear() noexcept { words_[0].store(0, std::memory_order_relaxed); }
  bool is_any() const noexcept { return (words_[0].load(std::memory_order_relaxed) & 0xff) != 0; }
  // A consistent copy.
  Call get() const noexcept;

 private:
  std::array<std::atomic<std::uint64_t>, 5> words_{};
  std::atomic<std::uint32_t> version_{0};
};

}  // namespace waywiser
