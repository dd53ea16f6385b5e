#include "waywiser/base/error.hpp"
#include "waywiser/comm/session/lifeline.hpp"

namespace waywiser {
namespace {

constexpr Seconds ending_patience = 3;       // with a process that has said that it ends
constexpr Seconds same_call_patience = 0.4;  // waiting ranks say so every 0.5 s

}  // namespace

void Lifeline::pass_on(int from, const Frame& frame) {
  for (const auto& [rank, line] : lines_)
    if (rank != from) send_to(rank, frame);
}

void Lifeline::send_up(const Frame& frame) {
  if (!is_root()) send_to(above(), frame);
}

Frame Lifeline::about(FrameKind kind, int rank) {
  WireWriter writer;
  writer.number(static_cast<std::uint32_t>(rank));
  return {kind, writer.bytes()};
}

void Lifeline::hear(int from, const Frame& frame) {
  WireReader reader(frame.body, "message of rank " + std::to_string(from));
  switch (frame.kind) {
    case FrameKind::failed: {
      const Error error = error_in(frame);
      set_failure(error.kind(), error.what());
      return pass_on(from, frame);
    }
    // It was still joining, and has more to say than that it has ended.
    case FrameKind::refused: return hear(from, failed_frame(ErrorKind::io, reason_in(frame)));
    case FrameKind::ending: {
      ends_.insert_or_assign(from, End{reason_in(frame), true, Deadline::in(ending_patience)});
      return;
    }
    default: from == above() ? hear_from_above(frame, reader) : hear_from_below(from, frame, reader);
  }
}

void Lifeline::hear_from_above(const Frame& frame, WireReader& reader) {
  if (frame.kind == FrameKind::halted) {
    const int rank = static_cast<int>(reader.number<std::uint32_t>());
    const int asker = static_cast<int>(reader.number<std::uint32_t>());
    if (asker == rank_) return note_halted(rank);
    return send_to(tree_.towards(asker), frame);
  }
  if (frame.kind != FrameKind::finished) reader.refuse("not its turn");
  pass_on(above(), frame);
  const std::lock_guard lock(mutex_);
  all_have_halted_ = finished_;  // the second time
  finished_ = true;
}

// Or from this rank itself.
void Lifeline::hear_from_below(int from, const Frame& frame, WireReader& reader) {
  switch (frame.kind) {
    case FrameKind::waiting: {
      const int rank = read_rank_below(from, reader);
      return wait_in(rank, read_call(reader), frame);
    }
    case FrameKind::leave:
    case FrameKind::parted: return note_parted(read_rank_below(from, reader), frame);
    case FrameKind::halted: return halted(read_rank_below(from, reader), frame);
    case FrameKind::ask_halted: {
      const int rank = static_cast<int>(reader.number<std::uint32_t>());
      const int asker = read_rank_below(from, reader);
      return is_root() ? tell_halted(rank, asker) : send_up(frame);
    }
    default: reader.refuse("not its turn");
  }
}

int Lifeline::read_rank_below(int from, WireReader& reader) const {
  const int rank = static_cast<int>(reader.number<std::uint32_t>());
  if (from == rank_ ? rank != rank_ : tree_.towards(rank) != from) reader.refuse("it speaks for another rank");
  return rank;
}

// The ranks of a collective wait in equal calls, of which the root needs one.
void Lifeline::wait_in(int rank, const Call& call, const Frame& frame) {
  if (is_root()) return compare(rank, call);
  if (is_collective(call.kind)) {
    if (call == told_up_ && !told_up_until_.passed()) return;
    told_up_ = call;
    told_up_until_ = Deadline::in(same_call_patience);
  }
  send_up(frame);
}

void Lifeline::note_parted(int rank, const Frame& frame) {
  parted_.insert(rank);
  send_up(frame);
  if (!is_root()) return;
  if (frame.kind == FrameKind::leave) left_.insert(rank);
  if (parted_.size() == ranks_.size()) all_have_parted();
}

// A rank that needed the others no longer may end, unless there are ranks below it, which reach the others through it.
void Lifeline::lost(int rank, const End& end) {
  if (rank == above())
    note_halted(rank);
  else
    halted(rank, about(FrameKind::halted, rank));
  if (finished()) return;
  if (!end.announced && parted_.contains(rank) && !tree_.is_above_any(rank))
    return note_parted(rank, about(FrameKind::leave, rank));
  const std::string why = described(rank) + " " + end.how;
  set_failure(ErrorKind::io, why);
  pass_on(rank, failed_frame(ErrorKind::io, why));
}

void Lifeline::note_halted(int rank) {
  const std::lock_guard lock(mutex_);
  known_to_have_halted_.insert(rank);
}

// The root tells the ranks that have asked.
void Lifeline::halted(int rank, const Frame& frame) {
  halted_.insert(rank);
  send_up(frame);
  if (!is_root()) return;
  for (const int asker : ask_halted_[rank]) tell_halted(rank, asker);
  ask_halted_.erase(rank);
}

// After close(): once those below have halted, after which the root tells them that all have.
bool Lifeline::may_end() {
  const std::lock_guard lock(mutex_);
  if (!posted_.empty()) return false;
  if (ending_ || !closing_) return ending_;
  if (halted_.size() - (halted_.contains(rank_) ? 1 : 0) < others_below_) return false;
  if (is_root()) pass_on(0, {FrameKind::finished, {}});
  return true;
}

}  // namespace waywiser
