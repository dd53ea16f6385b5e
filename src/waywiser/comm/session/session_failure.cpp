#include <linux/membarrier.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <exception>
#include <iterator>
#include <utility>

#include "waywiser/base/error.hpp"
#include "waywiser/base/timeout.hpp"
#include "waywiser/comm/session/process_end.hpp"
#include "waywiser/comm/session/session.hpp"

namespace waywiser {
namespace {

constexpr Seconds news_patience = 2;
constexpr Seconds ucx_ending_patience = 0.2;  // for UCX's requests under way when the group fails
constexpr unsigned turns_between_processes = 64;
constexpr int memory_is_held_exit_code = 70;

}  // namespace

void Session::abort(const std::string& why) noexcept {
  if (!closed_ && !forked_) lifeline_->fail(ErrorKind::io, "rank " + std::to_string(rank_) + ": " + why);
}

void Session::fail(ErrorKind kind, const std::string& why) {
  const std::string text = "rank " + std::to_string(rank_) + ": " + why;
  lifeline_->fail(kind, text);
  abandon_all();
  throw Error(kind, text);
}

// A connection may break before the life-line reports which rank has died, and how.
void Session::explain(const std::string& problem) {
  for (const Deadline deadline = Deadline::in(news_patience); !deadline.passed(); ::sched_yield())
    if (const std::string* why = lifeline_->failure()) throw_failure(*why);
  fail(ErrorKind::io, problem);
}

void Session::throw_closed() {
  current_.clear();
  throw Error(ErrorKind::invalid_input, "the group is closed");
}

void Session::throw_failure(const std::string& why) {
  if (forked_) throw Error(ErrorKind::unavailable, why);
  const std::string text = why + own_wait(why);  // while what it waits for can still be asked
  abandon_all();
  throw Error(lifeline_->failure_kind(), text);
}

void Session::give_up(Activity& operation) noexcept {
  if (forked_) return;
  const WhenFree lock(lock_);
  if (lifeline_->failure() == nullptr)
    lifeline_->fail(ErrorKind::io, "rank " + std::to_string(rank_) + ": " + text(operation.call()) + " was given up");
  abandon(operation);
  abandon_all();
}

// Called after an exception. An error from outside the group also ends the group, since others wait for this rank.
void Session::end_after(const Call& call) {
  if (lifeline_->failure() == nullptr) {
    std::string why = "an error";
    ErrorKind kind = ErrorKind::io;
    try {
      throw;
    } catch (const Error& error) {
      why = error.what();
      kind = error.kind();
    } catch (const std::exception& error) {
      why = error.what();
    } catch (...) {
    }
    lifeline_->fail(kind, "rank " + std::to_string(rank_) + ": " + text(call) + ": " + why);
  }
  abandon_all();
  throw;
}

void Session::abandon(Activity& operation) noexcept {
  engine_.held().begin(operation.call());
  operation.abandon();
}

void Session::abandon_all() noexcept {
  if (waits_for_ != nullptr) abandon(*waits_for_);
  for (const ThreadRuns* each = stepped_out_; each != nullptr; each = each->next_)
    if (each->waits_for_ != nullptr) abandon(*each->waits_for_);
  for (auto* list : {&under_way_, &by_themselves_}) {
    for (const auto& operation : *list) {
      if (operation->under_way) abandon(*operation);
      operation->under_way = false;
    }
    std::ranges::move(*list, std::back_inserter(abandoned_));
    list->clear();
  }
  wait_until_let_go();
  for (const auto& operation : abandoned_) operation->keeps.reset();
  current_.clear();
}

// First lets nearly complete operations finish. Then this rank touches no memory any more, says so, and waits for the
// same from the others.
void Session::wait_until_let_go() noexcept {
  MemoryUse usual = MemoryUse::usual;
  const bool may_progress = memory_use_.compare_exchange_strong(usual, MemoryUse::ending);
  const Seconds start = now_seconds();
  for (unsigned turn = 0;; ++turn) {
    const HeldMemory::Hold* hold = engine_.held().holder(
        [&](std::uint32_t peer) { return holds_nothing(peer, turn % turns_between_processes == 0); });
    if (hold == nullptr) break;
    const Seconds waited = now_seconds() - start;
    if (waited > options_.letting_go) end_process(*hold);
    if (may_progress && waited < ucx_ending_patience)
      engine_.progress_ucx();
    else if (!engine_.held().has_own())
      halt();
    ::sched_yield();
  }
  halt();
}

// Within a machine the mailboxes say it too: rank 0, which forwards it, may be the dead rank.
bool Session::holds_nothing(std::uint32_t peer, bool look_at_process) {
  const bool halted =
      memory_use_ == MemoryUse::none && (static_cast<int>(peer) == rank_ || engine_.mailboxes().has_halted(peer) ||
                                         lifeline_->has_halted(static_cast<int>(peer)));
  return halted || (look_at_process && engine_.mailboxes().reaches(peer) &&
                    process_has_ended(introduction(static_cast<int>(peer)).process));
}

void Session::end_process(const HeldMemory::Hold& hold) noexcept {
  const Introduction& peer = introduction(static_cast<int>(hold.peer));
  const std::string* why = lifeline_->failure();
  const std::string line = "waywiser: rank " + std::to_string(rank_) + " ends: rank " + std::to_string(hold.peer) +
                           " (process " + std::to_string(peer.process) + " on " + peer.host +
                           ") can still reach the memory of " + text(hold.call) + " " +
                           format_seconds(options_.letting_go) +
                           " after the group has failed: " + (why == nullptr ? "it was given up" : *why) + "\n";
  static_cast<void>(!::write(STDERR_FILENO, line.data(), line.size()));
  ::_exit(memory_is_held_exit_code);
}

void Session::halt() noexcept {
  if (memory_use_.exchange(MemoryUse::none) == MemoryUse::none) return;
  engine_.mailboxes().tell_halted();
  lifeline_->halt();
}

// Called by the life-line's thread once the group has failed. A call that has not seen the failure before the barrier
// is seen here; a call that begins later sees the failure and touches nothing.
bool Session::may_halt() noexcept {
  if (memory_use_ != MemoryUse::usual) return false;
  if (ProgressThread* thread = seen_thread_; thread != nullptr && thread->runs()) {
    thread->wake();  // the progress thread says it
    return false;
  }
  if (lock_.is_shared()) {
    if (!lock_.try_turn_of_thread()) return false;
    const bool halts = stepped_out_ == nullptr && say_halted();
    lock_.end_turn_of_thread();
    return halts;
  }
  if (::syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0) != 0) return false;
  return current_.get().kind == CallKind::none && say_halted();
}

bool Session::say_halted() noexcept {
  MemoryUse usual = MemoryUse::usual;
  if (!memory_use_.compare_exchange_strong(usual, MemoryUse::none)) return false;
  engine_.mailboxes().tell_halted();
  return true;
}

}  // namespace waywiser
