#include "waywiser/comm/session/lifeline.hpp"

namespace waywiser {

// The same call has the same number at all ranks: differing calls with one number can never complete. A rank reports
// again while it waits; if its peer had already left at the first report, the peer's message would have arrived by the
// second.
void Lifeline::compare(int rank, const Call& call) {
  const bool again = waiting_.contains(rank) && waiting_[rank] == call;
  waiting_[rank] = call;
  const bool by_any = takes_from_any(call);
  const bool alone = call.group == 0 && (by_any ? left_.size() + 1 >= ranks_.size() && !left_.contains(rank)
                                                : call.peer >= 0 && left_.contains(call.peer));
  std::string why;
  if (alone && again && abandoned_.contains(rank))
    why = "rank " + std::to_string(rank) + " waits in " + text(call) +
          (by_any ? ", but all others have left the group" : ", which has left the group");
  if (alone)
    abandoned_.insert(rank);
  else
    abandoned_.erase(rank);
  for (const auto& [other, theirs] : waiting_)
    if (why.empty() && is_collective(call.kind) && is_collective(theirs.kind))
      why = difference(other, theirs, rank, call);
  if (why.empty()) return;
  set_failure(ErrorKind::invalid_input, why);
  pass_on(0, failed_frame(ErrorKind::invalid_input, why));
}

void Lifeline::tell_halted(int rank, int asker) {
  if (rank < 0 || static_cast<std::size_t>(rank) >= ranks_.size()) return;
  if (!halted_.contains(rank)) {
    ask_halted_[rank].insert(asker);
    return;
  }
  if (asker == 0) return note_halted(rank);
  WireWriter writer;
  writer.number(static_cast<std::uint32_t>(rank));
  writer.number(static_cast<std::uint32_t>(asker));
  send_to(tree_.towards(asker), {FrameKind::halted, writer.bytes()});
}

void Lifeline::all_have_parted() {
  pass_on(0, {FrameKind::finished, {}});
  const std::lock_guard lock(mutex_);
  finished_ = true;
}

}  // namespace waywiser
