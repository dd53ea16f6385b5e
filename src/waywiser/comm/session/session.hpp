#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "waywiser/base/error.hpp"
#include "waywiser/comm/bootstrap/job_network.hpp"
#include "waywiser/comm/bootstrap/join_options.hpp"
#include "waywiser/comm/message/activity.hpp"
#include "waywiser/comm/session/engine.hpp"
#include "waywiser/comm/session/group_numbers.hpp"
#include "waywiser/comm/session/lifeline.hpp"
#include "waywiser/comm/session/progress_thread.hpp"
#include "waywiser/comm/session/rank_gpus.hpp"
#include "waywiser/comm/session/rts_numbers.hpp"
#include "waywiser/comm/session/session_lock.hpp"

namespace waywiser {

class Arrival;
class Event;

// What all groups of one rank share: the engine, the life-line and all operations under way. One thread uses it at a
// time: see CallLock.
// A process forked off a rank is not a rank: everything that it has of the group belongs to its parent and stays
// untouched.
class Session : public SessionLock, public std::enable_shared_from_this<Session> {
  struct Watch;

 public:
  explicit Session(const JoinOptions& options);
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  // Closes. If an exception is propagating, the other ranks hear that this rank has failed.
  ~Session();
  // Waits until all enqueued GPU operations have ended and all ranks have closed, unless the group has failed; then the
  // life-line's thread has ended too. No call is possible afterwards. Throws the error of a failed GPU operation if no
  // call has thrown it yet, and interrupted; then the others hear that this rank has failed.
  void close();
  void close_quietly() noexcept;
  bool is_forked() const noexcept { return forked_; }
  // This rank no longer needs the others, but how its process ends is not known yet. True: it is closed.
  bool part(Deadline patience) noexcept;
  // The process ends with this exit code: 0 closes; the other ranks hear of any other code. No thread of the session
  // runs afterwards.
  void end(int code) noexcept;
  // This rank cannot continue: all others hear why.
  void abort(const std::string& why) noexcept;

  // For destructors of what calls of a group use: also waits until no call of it has stepped out where it cannot rest.
  void lock_when_free_of(std::uint32_t group) noexcept;
  // From now on operations also progress between the calls of the program. Requires the lock.
  void need_progress_thread();
  // While this object lives, a call of the program lets the progress thread, if there is one, run, and other threads
  // that share the rank. Used around GPU driver calls that can wait for a stream which itself waits for that thread.
  class ThreadRuns {
   public:
    // `rests`: the call can go on with whatever destructors in other threads have done.
    explicit ThreadRuns(Session& session, bool rests = false) noexcept;
    ThreadRuns(const ThreadRuns&) = delete;
    ThreadRuns& operator=(const ThreadRuns&) = delete;
    ~ThreadRuns();

   private:
    friend class Session;
    Session& session_;
    Call call_;  // this and the next are for the call that comes back
    Activity* waits_for_ = nullptr;
    Watch* watch_ = nullptr;
    ThreadRuns* next_ = nullptr;
    CallLock::Left left_;
    const bool rests_;
  };
  int rank() const noexcept { return rank_; }
  int size() const noexcept { return static_cast<int>(lifeline_->ranks().size()); }
  Engine& engine() noexcept { return engine_; }
  const Introduction& introduction(int rank) const { return lifeline_->ranks()[static_cast<std::size_t>(rank)]; }
  const JoinOptions& options() const noexcept { return options_; }
  bool same_machine(int rank) const { return introduction(rank).machine_id == introduction(rank_).machine_id; }
  const JobNetwork& network() const noexcept { return network_; }
  RankGpus& gpus() noexcept { return gpus_; }
  Seconds timeout() const noexcept { return timeout_; }
  void set_timeout(Seconds timeout);
  // Why the group has failed; empty if it has not. Its errors are of one kind at all ranks.
  std::string failure() const { return lifeline_->failure() == nullptr ? "" : *lifeline_->failure(); }
  ErrorKind failure_kind() const noexcept { return lifeline_->failure_kind(); }
  Call current() const noexcept { return current_.get(); }
  // How often a wait may poll before it looks around; seldom often where other ranks want this core.
  unsigned turns_between_looks() const noexcept { return turns_between_looks_; }

  // Waits until `done()` is true. Throws timeout with the text of `progress_text()`, or io if the group has failed.
  // `longer` extends the timeout for operations that end by themselves then, with a better reason.
  template <typename Done, typename Text>
  void wait(const Call& call, Done done, Text progress_text, Seconds longer = 0) {
    if (done()) return;
    const PartOfCall part(*this, call);
    const auto read = [](const void* text) -> std::string { return (*static_cast<const Text*>(text))(); };
    Watch watch{call, &progress_text, read, longer};
    const Waiting waiting(watch_, watch);
    for (unsigned turn = 1;; ++turn) {
      progress();
      if (turn % turns_between_looks_ == 0) {
        if (lifeline_->failure() != nullptr) progress();  // what a rank has sent before it failed has arrived
        if (done()) return;
        look(watch);
      }
      if (done()) return;
      if (lock_.is_wanted()) [[unlikely]]
        let_others_in();
    }
  }
  // Runs an operation that the caller owns until it is over: when this returns or throws.
  void wait(Activity& operation) {
    const Waiting waiting(waits_for_, operation);
    try {
      wait(operation.call(), [&] { return operation.advance(); }, [&] { return operation.progress_text(); });
    } catch (...) {
      end_after(operation.call());
    }
  }

  // Waits until a started operation is over.
  void wait_for(Activity& operation);

  void progress() {
    engine_.progress();
    if (!under_way_.empty()) advance_all();
  }
  // Waits until a GPU has reached the event or has failed; operations progress meanwhile. Throws what synchronize()
  // throws.
  void settle(const Event& event, Deadline deadline);
  // The operation gets a turn whenever this rank waits.
  void start(std::shared_ptr<Activity> operation);
  // Nobody asks for this operation any more; it continues, with what it keeps.
  void leave_alone(const std::shared_ptr<Activity>& operation);
  // Ends an incomplete operation, and so the group fails. When it returns, nobody holds the operation's memory.
  void give_up(Activity& operation) noexcept;
  // Polls an operation that progresses by itself.
  bool is_under_way(Activity& operation) {
    if (operation.under_way && !operation.needs_turns() && advance(operation)) operation.under_way = false;
    return operation.under_way;
  }
  // An operation that goes on has moved: the progress thread looks again soon. Within advance().
  void note_moved() noexcept { moved_ = true; }
  // For an operation that waits outside any call: the root compares it with what the other ranks wait in.
  void tell_waiting(const Call& call) { lifeline_->tell_waiting(call); }
  // Fails the group: all ranks hear of it.
  [[noreturn]] void fail(ErrorKind kind, const std::string& why);

  GroupNumbers group_numbers;
  RtsNumbers rts;

 private:
  friend class InCall;
  friend void look_around(Session& session, const Call& call);
  explicit Session(Arrival&& arrival);
  // Begins a call: throws if the group has failed; other processes can see which call this rank is in.
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
  // A wait and what it says of itself.
  struct Watch {
    const Call& call;
    const void* progress_text;
    std::string (*read)(const void* progress_text);
    Seconds longer;
    Seconds started = 0;
    Seconds tell_at = 0;
    Seconds ask_at = 0;
    bool is_long() const;
    std::string progress() const { return read(progress_text); }
  };
  // A wait belongs to the call that this rank is in, or is a call of its own.
  class PartOfCall {
   public:
    PartOfCall(Session& session, const Call& call)
        : lock_(session), session_(session.current_.is_any() ? nullptr : &session) {
      if (session_ != nullptr) session_->begin(call);
    }
    PartOfCall(const PartOfCall&) = delete;
    PartOfCall& operator=(const PartOfCall&) = delete;
    ~PartOfCall() {
      if (session_ != nullptr) session_->end();
    }

   private:
    const std::lock_guard<Session> lock_;
    Session* session_;
  };
  // Held while a call waits in what only it knows.
  template <typename What>
  class Waiting {
   public:
    Waiting(What*& place, What& what) : place_(place), before_(std::exchange(place, &what)) {}
    Waiting(const Waiting&) = delete;
    Waiting& operator=(const Waiting&) = delete;
    ~Waiting() { place_ = before_; }

   private:
    What*& place_;
    What* before_;
  };
  // What this rank may do with any memory. usual: everything; ending: it fails and starts nothing new; none: nothing.
  enum class MemoryUse { usual, ending, none };

  void look(Watch& watch);
  bool stop_waiting(Watch& watch);
  std::string own_wait(const std::string& failure) const;
  ProgressThread::Found turn_of_thread() noexcept;
  void wake_thread() noexcept {
    if (progress_thread_) [[unlikely]]
      progress_thread_->wake();
  }
  [[noreturn]] void refuse_thread() const override;
  // Throws if the group has failed meanwhile.
  void let_others_in();
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
  bool say_halted() noexcept;
  bool is_interrupted();
  bool is_unwinding() const noexcept;
  friend class ForkWatch;
  void leave_to_parent() noexcept;
  std::function<std::string()> describer(const Introduction& mine, const std::string& job) const;

  JoinOptions options_;
  Seconds timeout_;
  const JobNetwork network_;
  Engine engine_;
  int rank_;
  CurrentCall current_;
  std::atomic<Seconds> waiting_since_{0};  // 0: no unusually long wait
  std::atomic<MemoryUse> memory_use_{MemoryUse::usual};
  std::unique_ptr<ProgressThread> progress_thread_;    // nullptr: there is none
  std::atomic<ProgressThread*> seen_thread_{nullptr};  // the same, for other threads
  bool moved_ = false;
  ThreadRuns* stepped_out_ = nullptr;  // calls of other threads, if they share the rank
  std::unique_ptr<Lifeline> lifeline_;
  int exceptions_ = 0;
  unsigned turns_between_looks_ = 1024;
  Seconds ask_at_ = 0;  // look_around()
  bool closed_ = false, forked_ = false;
  std::shared_ptr<Session> kept_by_fork_;  // this session
  RankGpus gpus_;                          // the operations below return memory to it
  Activity* waits_for_ = nullptr;          // an operation that a caller owns
  Watch* watch_ = nullptr;                 // the innermost wait of the call that this rank is in
  // Operations that need turns; those that progress by themselves, some already complete; those that were given up.
  std::vector<std::shared_ptr<Activity>> under_way_, by_themselves_, abandoned_;
  std::size_t forget_at_ = first_forget;
  static constexpr std::size_t first_forget = 256;
};

// For a wait that goes on elsewhere: throws if the group has failed, or if this rank is interrupted, which fails it.
void look_around(Session& session, const Call& call);
// Why same_machine() is false.
std::string why_apart(const Session& session, int rank);

}  // namespace waywiser
