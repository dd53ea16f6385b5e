#pragma once

#include <bitset>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "waywiser/base/error.hpp"
#include "waywiser/comm/bootstrap/job_network.hpp"
#include "waywiser/comm/bootstrap/join_options.hpp"
#include "waywiser/comm/rendezvous/rts_cts_fin.hpp"
#include "waywiser/comm/session/activity.hpp"
#include "waywiser/comm/session/engine.hpp"
#include "waywiser/comm/session/group_numbers.hpp"
#include "waywiser/comm/session/lifeline.hpp"
#include "waywiser/comm/session/progress_thread.hpp"
#include "waywiser/comm/session/watchdog.hpp"

namespace waywiser {

class Event;
class GpuConnections;
class PeerMemory;

// What all groups of one rank share: the engine, the life-line, and everything under way. Used by one thread at a time:
// the program's, or between its calls the progress thread, if there is one.
// A process that was forked off a rank is no rank: everything that it has of the group is its parent's, and left alone.
class Session : public std::enable_shared_from_this<Session> {
 public:
  explicit Session(const JoinOptions& options);
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  // Closes; but when an exception is on its way, the others hear that this rank has failed.
  ~Session();
  // Waits until what was enqueued on GPUs has ended and all ranks have closed, unless the group has failed. No call is
  // possible afterwards. Throws what an operation on a GPU has failed with, if no call has thrown it yet, and
  // interrupted: the others then hear that this rank has failed.
  void close();
  void close_quietly() noexcept;
  bool is_forked() const noexcept { return forked_; }
  // This rank needs the others no more, but how its process ends is not known yet. True: it is closed.
  bool part(Deadline patience) noexcept;
  // The process ends with this exit code: closes, or the others hear of it.
  void end(int code) noexcept;
  // This rank cannot go on: all others hear why.
  void abort(const std::string& why) noexcept;

  // Around all that the program's thread does here (std::lock_guard). Calls nest. Nothing but a count without a
  // progress thread.
  void lock() noexcept {
    if (locks_) [[unlikely]]
      progress_thread_->lock();
    ++depth_;
  }
  void unlock() noexcept {
    --depth_;
    if (locks_) [[unlikely]]
      progress_thread_->unlock();
  }
  // From now on what is under way goes on between the calls of the program, too. With the lock.
  void need_progress_thread();
  // In a call of the program: until this goes the progress thread, if there is one, has turns. Around calls of a GPU's
  // driver, which can wait for a stream that waits for that thread.
  class ThreadRuns {
   public:
    explicit ThreadRuns(Session& session)
        : session_(session), calls_(session.locks_ && !session.thread_runs_ ? session.depth_ : 0) {
      session.thread_runs_ |= calls_ != 0;
      for (int call = 0; call < calls_; ++call) session_.progress_thread_->unlock();
    }
    ThreadRuns(const ThreadRuns&) = delete;
    ThreadRuns& operator=(const ThreadRuns&) = delete;
    ~ThreadRuns() {
      for (int call = 0; call < calls_; ++call) session_.progress_thread_->lock();
      if (calls_ != 0) session_.thread_runs_ = false;
    }

   private:
    Session& session_;
    const int calls_;
  };

  int rank() const noexcept { return rank_; }
  int size() const noexcept { return static_cast<int>(lifeline_->ranks().size()); }
  Engine& engine() noexcept { return engine_; }
  const Introduction& introduction(int rank) const { return lifeline_->ranks()[static_cast<std::size_t>(rank)]; }
  const JoinOptions& options() const noexcept { return options_; }
  bool same_machine(int rank) const { return introduction(rank).machine_id == introduction(rank_).machine_id; }
  // As the launch tells, before any rank has come: then nothing listens on a network.
  bool within_a_machine() const noexcept { return network_.within_a_machine; }
  bool encrypts() const noexcept { return !network_.within_a_machine && options_.encrypt.value_or(false); }
  // Whether any rank may send out of a GPU: what comes can then need work of the receiver's before it is there.
  bool gpus_send() const noexcept { return gpus_send_; }
  // Throws unavailable when this rank has joined without one.
  const std::shared_ptr<Platform>& shared_platform();
  Platform& platform() { return *shared_platform(); }
  // Of this rank's GPUs; throws unavailable like platform().
  GpuConnections& gpu_connections();
  PeerMemory& peer_memory();
  Watchdog& watchdog();
  Seconds timeout() const noexcept { return timeout_; }
  void set_timeout(Seconds timeout);

  // Of a call, by InCall: throws when the group has failed; others can see what this rank is in.
  void begin(const Call& call) {
    current_.set(call);
    std::atomic_signal_fence(std::memory_order_seq_cst);  // in this order: see may_halt()
    if (const std::string* why = lifeline_->failure()) throw_failure(*why);
    if (closed_) throw_closed();
  }
  void end() {
    current_.clear();
    waiting_since_.store(0, std::memory_order_relaxed);
  }
  // Why the group has failed; empty while it has not.
  std::string failure() const { return lifeline_->failure() == nullptr ? "" : *lifeline_->failure(); }
  Call current() const noexcept { return current_.get(); }

  // Until `done()` is true. Throws timeout with what `progress_text()` says, or io when the group has failed. `longer`:
  // than the timeout, for what ends by itself then and says more.
  template <typename Done, typename Text>
  void wait(const Call& call, Done done, Text progress_text, Seconds longer = 0) {
    if (done()) return;
    const PartOfCall part(*this, call);
    Watch watch{0, 0, 0, longer};
    for (unsigned turn = 1;; ++turn) {
      progress();
      if (turn % turns_between_looks_ == 0) look(watch, call, progress_text);
      if (done()) return;
    }
  }
  // An operation of the caller's own, which is over when this returns or throws.
  void wait(Activity& operation) {
    const Waiting waiting(waits_for_, operation);
    try {
      wait(operation.call(), [&] { return operation.advance(); }, [&] { return operation.progress_text(); });
    } catch (...) {
      end_after(operation.call());
    }
  }

  // Until one that was started is over.
  void wait_for(Activity& operation);

  void progress() {
    engine_.progress();
    if (!under_way_.empty()) advance_all();
  }
  // Until a GPU has got there, or has failed; what is under way goes on meanwhile. Throws what synchronize() throws.
  void settle(const Event& event, Deadline deadline);
  // Gets turns whenever this rank waits for anything.
  void start(std::shared_ptr<Activity> operation);
  // Nobody asks for it any more; it goes on, with what it keeps.
  void leave_alone(const std::shared_ptr<Activity>& operation);
  // Ends one that is not complete: the group has failed then. Nobody holds its memory when it returns.
  void give_up(Activity& operation) noexcept;
  // Asks one that goes on by itself.
  bool is_under_way(Activity& operation) {
    if (operation.under_way && !operation.needs_turns() && advance(operation)) operation.under_way = false;
    return operation.under_way;
  }
  // For an operation that waits while no call does: the root compares it with what others wait in.
  void tell_waiting(const Call& call) { lifeline_->tell_waiting(call); }
  // All ranks hear of it.
  [[noreturn]] void fail(ErrorKind kind, const std::string& why);

  // Why the last message between GPUs of this rank and another one went through the host; empty: none did.
  std::string why_staged(int rank) const;
  void note_staged(int rank, const std::string& why) { why_staged_[rank] = why; }
  // Of an RTS of this rank, until it is given back; nothing when all are taken.
  std::optional<unsigned> take_rts_number();
  void give_back_rts_number(unsigned number) { rts_numbers_taken_.reset(number); }
  GroupNumbers group_numbers;

 private:
  struct Watch {
    Seconds started = 0;
    Seconds tell_at = 0;
    Seconds ask_at = 0;
    Seconds longer = 0;
  };
  // A wait is a part of the call that this rank is in, or a call of its own.
  class PartOfCall {
   public:
    PartOfCall(Session& session, const Call& call) : session_(session.current_.is_any() ? nullptr : &session) {
      if (session_ != nullptr) session_->begin(call);
    }
    PartOfCall(const PartOfCall&) = delete;
    PartOfCall& operator=(const PartOfCall&) = delete;
    ~PartOfCall() {
      if (session_ != nullptr) session_->end();
    }

   private:
    Session* session_;
  };
  // While a call waits for an operation that only it knows.
  class Waiting {
   public:
    Waiting(Activity*& place, Activity& operation) : place_(place), before_(std::exchange(place, &operation)) {}
    Waiting(const Waiting&) = delete;
    Waiting& operator=(const Waiting&) = delete;
    ~Waiting() { place_ = before_; }

   private:
    Activity*& place_;
    Activity* before_;
  };
  // What this rank does with memory, its own and that of others: all that it is asked to; while it fails, nothing new;
  // nothing.
  enum class MemoryUse { usual, ending, none };

  template <typename Text>
  void look(Watch& watch, const Call& call, Text progress_text) {
    if (stop_waiting(watch, call)) fail(ErrorKind::timeout, waited_too_long(call, progress_text()));
  }
  bool stop_waiting(Watch& watch, const Call& call);
  std::string waited_too_long(const Call& call, const std::string& progress) const;
  ProgressThread::Found turn_of_thread() noexcept;
  void wake_thread() noexcept {
    if (locks_) [[unlikely]]
      progress_thread_->wake();
  }
  [[noreturn]] void throw_failure(const std::string& why);
  [[noreturn]] void throw_closed();
  void explain(const std::string& problem);
  bool advance(Activity& operation) {
    try {
      return operation.advance();
    } catch (...) {
      end_after(operation.call());
    }
  }
  void advance_all();
  bool await_others(Deadline patience);
  void forget_complete();
  void abandon_all() noexcept;
  void leave();
  void abandon(Activity& operation) noexcept;
  [[noreturn]] void end_after(const Call& call);
  void wait_until_let_go() noexcept;
  bool holds_nothing(std::uint32_t peer, bool look_at_process);
  [[noreturn]] void end_process(const HeldMemory::Hold& hold) noexcept;
  void halt() noexcept;
  bool may_halt() noexcept;
  bool is_interrupted() const;
  bool is_unwinding() const noexcept;
  friend class ForkWatch;
  void leave_to_parent() noexcept;
  Introduction introduce(const Launch& launch) const;
  std::function<std::string()> describer(const Introduction& mine, const std::string& job) const;

  JoinOptions options_;
  Seconds timeout_;
  const JobNetwork network_;
  Engine engine_;
  int rank_;
  CurrentCall current_;
  std::atomic<Seconds> waiting_since_{0};  // 0: not unusually long
  std::atomic<MemoryUse> memory_use_{MemoryUse::usual};
  std::unique_ptr<ProgressThread> progress_thread_;    // null: none
  std::atomic<ProgressThread*> seen_thread_{nullptr};  // the same, for other threads
  bool locks_ = false, thread_runs_ = false;
  int depth_ = 0;  // of calls
  std::unique_ptr<Lifeline> lifeline_;
  int exceptions_ = 0;
  unsigned turns_between_looks_ = 1024;
  bool closed_ = false, gpus_send_ = false, forked_ = false;
  std::shared_ptr<Session> kept_by_fork_;  // this one
  std::bitset<rts_numbers> rts_numbers_taken_;
  unsigned next_rts_number_ = 0;
  std::unique_ptr<Watchdog> watchdog_;
  std::unique_ptr<PeerMemory> peer_memory_;
  std::unique_ptr<GpuConnections> gpu_connections_;  // the operations below give memory back to it
  Activity* waits_for_ = nullptr;                    // an operation of a caller's own
  // Those that need turns; the others, with some that are complete; all that were given up.
  std::vector<std::shared_ptr<Activity>> under_way_, by_themselves_, abandoned_;
  std::size_t forget_at_ = first_forget;
  static constexpr std::size_t first_forget = 256;
  std::map<int, std::string> why_staged_;
};

// This rank is in a call until this goes, whether the call returns or throws.
class InCall {
 public:
  InCall(Session& session, const Call& call) : lock_(session), session_(session) { session_.begin(call); }
  InCall(const InCall&) = delete;
  InCall& operator=(const InCall&) = delete;
  ~InCall() { session_.end(); }

 private:
  const std::lock_guard<Session> lock_;
  Session& session_;
};

}  // namespace waywiser
