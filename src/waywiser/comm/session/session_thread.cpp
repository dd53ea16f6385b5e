// The parts of Session that run outside the program's calls, and let other threads have a turn.
#include <sched.h>

#include <utility>

#include "waywiser/base/error.hpp"
#include "waywiser/comm/peer_memory/gpu_connections.hpp"
#include "waywiser/comm/peer_memory/peer_memory.hpp"
#include "waywiser/comm/session/session.hpp"
#include "waywiser/device/stream.hpp"

namespace waywiser {
namespace {

constexpr Seconds between_looks_for_signals = 0.05;

}  // namespace

void Session::refuse_thread() const {
  const Call other = current_.get();
  const std::string where = other.kind == CallKind::none ? "a call" : text(other);
  throw Error(ErrorKind::invalid_input,
              "rank " + std::to_string(rank_) + ": another thread is in " + where +
                  ": one thread at a time may use a rank. Join with the option `threads` and give each thread a group "
                  "of its own, made by split; or let each thread join by itself");
}

void Session::need_progress_thread() {
  if (progress_thread_ || closed_ || forked_) return;
  lock_.add_thread();
  progress_thread_ =
      std::make_unique<ProgressThread>(lock_, [this] { return turn_of_thread(); }, options_.progress_core);
  seen_thread_ = progress_thread_.get();
  progress_thread_->start();  // it sees all this, and gets no turn before the call around this one ends
}

Session::ThreadRuns::ThreadRuns(Session& session, bool rests) noexcept : session_(session), rests_(rests) {
  if (!session.lock_.is_mine()) return;
  call_ = session.current_.get();
  if (session.call_lock().is_shared()) {
    waits_for_ = std::exchange(session.waits_for_, nullptr);
    watch_ = std::exchange(session.watch_, nullptr);
    next_ = std::exchange(session.stepped_out_, this);
    session.current_.clear();
  }
  left_ = rests ? session.lock_.rest() : session.lock_.step_out();
}

Session::ThreadRuns::~ThreadRuns() {
  if (left_.depth == 0) return;
  session_.lock_.come_back(left_);
  if (call_.kind != CallKind::none) session_.current_.set(call_);
  if (!session_.call_lock().is_shared()) return;
  ThreadRuns** place = &session_.stepped_out_;
  while (*place != this) place = &(*place)->next_;
  *place = next_;
  session_.waits_for_ = waits_for_;
  session_.watch_ = watch_;
}

void Session::lock_when_free_of(std::uint32_t group) noexcept {
  const auto is_out = [&] {
    for (const ThreadRuns* each = stepped_out_; each != nullptr; each = each->next_)
      if (!each->rests_ && each->call_.group == group) return true;
    return false;
  };
  for (lock_.lock_when_free(); is_out(); lock_.lock_when_free()) {
    lock_.unlock();
    ::sched_yield();
  }
}

void Session::let_others_in() {
  {
    const ThreadRuns others(*this, true);
  }
  if (const std::string* why = lifeline_->failure()) throw_failure(*why);
}

// If the group fails between two calls, the thread does what the next call would do.
ProgressThread::Found Session::turn_of_thread() noexcept {
  using Found = ProgressThread::Found;
  const std::size_t before = under_way_.size() + by_themselves_.size();
  try {
    if (closed_) return Found::nothing;
    if (lifeline_->failure() == nullptr) progress();
    if (const auto why = engine_.broken(); why && lifeline_->failure() == nullptr)
      engine_.broken_by_an_end() ? explain(*why) : fail(ErrorKind::io, *why);
    if (lifeline_->failure() == nullptr) forget_complete();
  } catch (const Error& error) {
    if (lifeline_->failure() == nullptr)
      lifeline_->fail(error.kind(), "rank " + std::to_string(rank_) + ": " + error.what());
  } catch (const std::exception& error) {
    if (lifeline_->failure() == nullptr)
      lifeline_->fail(ErrorKind::io, "rank " + std::to_string(rank_) + ": " + error.what());
  }
  if (lifeline_->failure() != nullptr) {
    abandon_all();
    return Found::end;
  }
  const std::size_t left = under_way_.size() + by_themselves_.size();
  if (left == 0) return Found::nothing;
  return std::exchange(moved_, false) || left < before ? Found::moved : Found::waits;
}

void Session::settle(const Event& event, Deadline deadline) {
  Seconds ask_at = now_seconds() + between_looks_for_signals;
  try {
    for (; !ended(event) && !deadline.passed() && lifeline_->failure() == nullptr; ::sched_yield()) {
      progress();
      if (lock_.is_wanted()) let_others_in();
      if (now_seconds() < ask_at || current_.get().kind != CallKind::leave) continue;
      ask_at = now_seconds() + between_looks_for_signals;
      if (is_interrupted()) fail(ErrorKind::interrupted, "interrupted in leave");
    }
  } catch (const Error& error) {  // the group has failed: the GPU's error says more
    if (error.kind() == ErrorKind::interrupted) throw;
  }
  event.synchronize(deadline);
}

}  // namespace waywiser
