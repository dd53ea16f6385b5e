#include <atomic>

#include "waywiser/heap/heap_state.hpp"

namespace waywiser {
namespace {

using one_sided::FaultNotice, one_sided::FaultReason;

std::string wanted_text(const FaultNotice& notice) {
  constexpr const char* names[] = {"", "not ", "> ", ">= ", "< ", "<= "};
  return notice.comparison < std::size(names) ? names[notice.comparison] + std::to_string(notice.wanted) : "another";
}

}  // namespace

std::optional<Error> Heap::State::fault() const {
  const auto& told = *reinterpret_cast<const FaultNotice*>(notice.region().data);
  const std::uint64_t failed = std::atomic_ref(const_cast<std::uint64_t&>(told.failed)).load(std::memory_order_acquire);
  if (failed == 0) return {};
  const int peer = static_cast<int>(static_cast<std::uint32_t>(failed)) - 1;
  const std::string me = "rank " + std::to_string(group.rank()) + ", heap '" + name + "': ";
  const std::string access = "a kernel accesses " + std::to_string(told.bytes) + " bytes at offset " +
                             std::to_string(static_cast<std::int64_t>(told.offset)) + " of rank " +
                             std::to_string(peer);
  switch (static_cast<FaultReason>(failed >> 32)) {
    case FaultReason::late: {
      const bool team = told.offset >= counters;
      const std::string word = team ? "a counter of a team" : "the word at offset " + std::to_string(told.offset);
      return Error(ErrorKind::timeout,
                   me + (peer < 0 ? "nobody changed " : "rank " + std::to_string(peer) + " did not change ") + word +
                       " within " + format_seconds(deadline) + ": it is " + std::to_string(told.seen) +
                       ", and a kernel waits for " + wanted_text(told));
    }
    case FaultReason::outside:
      return Error(ErrorKind::invalid_input, me + access + ", which has " + std::to_string(bytes));
    case FaultReason::not_reached:
      return Error(ErrorKind::unavailable,
                   me + access + ", which stores do not reach: " + why_proxied[static_cast<std::size_t>(peer)]);
    case FaultReason::proxy_late:
      return Error(ErrorKind::timeout, me + access + ", which the proxy has not carried out within " +
                                           format_seconds(deadline) +
                                           ": stores do not reach it: " + why_proxied[static_cast<std::size_t>(peer)]);
    case FaultReason::stopped: return Error(session().failure_kind(), me + "a kernel was stopped: " + why_failed());
    case FaultReason::too_long:
      return Error(ErrorKind::invalid_input, me + "a message of " + std::to_string(told.bytes) +
                                                 " bytes is longer than the inbox at offset " +
                                                 std::to_string(told.offset) + " takes");
    case FaultReason::overlap:
      return Error(ErrorKind::invalid_input, me + "the arrays of a team's call overlap: it reads " +
                                                 std::to_string(told.bytes) + " bytes at offset " +
                                                 std::to_string(told.wanted) + " and writes at offset " +
                                                 std::to_string(told.offset));
    case FaultReason::none:
    case FaultReason::no_rank: break;
  }
  return Error(ErrorKind::invalid_input,
               me + "a kernel names rank " + std::to_string(peer) + " of " + std::to_string(group.size()));
}

}  // namespace waywiser
