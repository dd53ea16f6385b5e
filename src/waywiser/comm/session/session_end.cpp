#include <sched.h>

#include <chrono>
#include <exception>
#include <thread>

#include "waywiser/base/error.hpp"
#include "waywiser/base/timeout.hpp"
#include "waywiser/comm/message/fault_point.hpp"
#include "waywiser/comm/peer_memory/peer_memory.hpp"
#include "waywiser/comm/session/session.hpp"

namespace waywiser {
namespace {

constexpr Seconds closing_patience = 5;
constexpr Seconds between_interrupt_checks = 0.05;
constexpr unsigned looks_before_sleep = 1024;

}  // namespace

bool Session::is_unwinding() const noexcept { return std::uncaught_exceptions() > exceptions_; }

void Session::close_quietly() noexcept {
  try {
    close();
  } catch (const Error&) {  // the others have heard
  }
}

// The parent still uses these objects: they are never destroyed here.
void Session::leave_to_parent() noexcept {
  static const std::string why =
      "this process was forked off a rank and has no part in its group: only the parent can use it; a child may exec, "
      "or be made another way (subprocess, multiprocessing's spawn)";
  kept_by_fork_ = weak_from_this().lock();
  forked_ = true;
  lock_.forked();
  lifeline_->leave_to_parent(&why);
}

// The others may still need answers from this rank's engine. There is no deadline: a rank may compute for hours while
// the others have finished, and a dead rank is detected.
void Session::close() {
  if (closed_ || forked_) return;
  const std::lock_guard lock(*this);
  if (stepped_out_ != nullptr)
    throw Error(ErrorKind::invalid_input,
                "rank " + std::to_string(rank_) + ": close, while another thread is in " + text(stepped_out_->call_));
  std::exception_ptr problem;
  try {
    current_.set({CallKind::leave});
    gpus_.settle();
  } catch (const Error&) {
    problem = std::current_exception();
  }
  closed_ = true;
  if (!problem && lifeline_->failure() == nullptr) gpus_.let_go();
  leave();
  if (lifeline_->failure() == nullptr) lifeline_->close();  // else the others may still ask
  // After an error GPUs of other ranks may still write to this one, until this object is destroyed.
  if (!problem && lifeline_->failure() == nullptr) gpus_.close_memory();
  if (problem) std::rethrow_exception(problem);
}

void Session::leave() {
  bool was_interrupted = false;
  try {
    current_.set({CallKind::leave});
    fault_point(ProtocolStep::close);
    if (lifeline_->failure() == nullptr) lifeline_->leave();
    was_interrupted = !await_others(Deadline::in(longest_timeout));
    if (was_interrupted)
      lifeline_->fail(ErrorKind::interrupted, "rank " + std::to_string(rank_) + ": interrupted in leave");
    if (lifeline_->failure() == nullptr) engine_.close(Deadline::in(closing_patience));
  } catch (const Error&) {  // the others report the reason
  }
  abandon_all();
  if (was_interrupted) throw Error(ErrorKind::interrupted, *lifeline_->failure());
}

// False: the others take longer, or the user wants to stop.
bool Session::await_others(Deadline patience) {
  Seconds ask_at = now_seconds() + between_interrupt_checks;
  for (unsigned turn = 0; !lifeline_->finished() && lifeline_->failure() == nullptr; ++turn) {
    progress();
    if (lock_.is_wanted()) {
      const ThreadRuns others(*this, true);
    }
    if (turn < looks_before_sleep)
      ::sched_yield();
    else if (patience.passed())
      return false;
    else
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    if (now_seconds() < ask_at) continue;
    ask_at = now_seconds() + between_interrupt_checks;
    if (is_interrupted()) return false;
  }
  return true;
}

// Another thread may be inside a call while the process lives.
bool Session::part(Deadline patience) noexcept {
  if (forked_ || is_unwinding()) return true;
  if (!closed_ && lifeline_->failure() == nullptr && current_.is_any()) return false;
  if (!lock_.lock()) return false;
  const std::lock_guard lock(*this, std::adopt_lock);
  if (stepped_out_ != nullptr) return false;
  if (!closed_ && lifeline_->failure() == nullptr) {
    options_.interrupted = nullptr;
    current_.set({CallKind::leave});
    bool are_gone = true;
    try {
      gpus_.settle();
      lifeline_->part();
      are_gone = await_others(patience);
    } catch (const Error&) {  // the others report the reason
    }
    current_.clear();
    if (!are_gone) return false;
  }
  close_quietly();
  return true;
}

void Session::end(int code) noexcept {
  options_.interrupted = nullptr;
  gpus_.report();
  if (code == 0) {
    close_quietly();
    gpus_.report();  // what has ended since
  }
  if (progress_thread_) progress_thread_->stop();
  if (!closed_) lifeline_->end("ended with exit code " + std::to_string(code));
  lifeline_->stop();  // also of a group that has failed, and was closed
}

}  // namespace waywiser
