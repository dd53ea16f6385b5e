#include "waywiser/comm/session/session.hpp"

#include <linux/membarrier.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <exception>
#include <iterator>
#include <thread>
#include <utility>

#include "waywiser/base/error.hpp"
#include "waywiser/base/started_thread.hpp"
#include "waywiser/base/timeout.hpp"
#include "waywiser/comm/bootstrap/plan_fingerprint.hpp"
#include "waywiser/comm/bootstrap/rank_status.hpp"
#include "waywiser/comm/network/encryption.hpp"
#include "waywiser/comm/peer_memory/gpu_connections.hpp"
#include "waywiser/comm/peer_memory/peer_memory.hpp"
#include "waywiser/comm/session/fault_point.hpp"
#include "waywiser/comm/session/fork_watch.hpp"
#include "waywiser/comm/session/process_end.hpp"
#include "waywiser/comm/session/session_options.hpp"
#include "waywiser/comm/shared_memory/cores.hpp"
#include "waywiser/device/platform.hpp"
#include "waywiser/policy/chooser.hpp"
#include "waywiser/topology/discover.hpp"

namespace waywiser {
namespace {

constexpr Seconds unusual_wait = 0.5;
constexpr Seconds long_wait = 0.01;  // from then on it yields the core
constexpr Seconds closing_patience = 5;
constexpr Seconds between_questions = 0.05;
constexpr Seconds news_patience = 2;
constexpr Seconds ending_patience = 0.2;  // for UCX's requests under way when the group fails
constexpr unsigned turns_between_processes = 64;
constexpr int memory_is_held_exit_code = 70;
constexpr unsigned looks_when_alone = 1024, looks_when_crowded = 16;

std::unique_ptr<EncryptedMessages> encrypted_messages(const JoinOptions& options) {
  const bool wanted = *options.encrypt && !is_within_a_machine(*options.launch);
  return wanted ? encrypted_messages(*options.launch, options.chooser.get()) : nullptr;
}

JobNetwork chosen_network(const JoinOptions& options) {
  JobNetwork network =
      job_network(*options.launch, options.chooser ? &options.chooser->plan() : nullptr, *options.encrypt);
  if (!network.note.empty() && options.launch->rank == 0)
    std::fputs(("waywiser: " + network.note + "\n").c_str(), stderr);
  return network;
}

// If it is unknown, the paths to the plan's first type of node are used.
std::string node_of_this_machine() {
  try {
    return fingerprint(discover());
  } catch (const Error& error) {
    std::fprintf(stderr, "waywiser: the type of this node is not known: %s\n", error.what());
    return {};
  }
}

}  // namespace

Session::Session(const JoinOptions& options)
    : options_(with_environment(options)),
      timeout_(timeout_of(options)),
      network_(chosen_network(options_)),
      engine_(static_cast<std::size_t>(options_.launch->size), network_.settings,
              NetworkPaths(network_.open ? options_.chooser : nullptr), encrypted_messages(options_)),
      rank_(options_.launch->rank) {
  arm_faults();
  make_thread_data();
  const Launch& launch = *options_.launch;
  const Introduction mine = introduce(launch);
  Muster muster = meet(launch, mine, Deadline::in(timeout_), options_.announce, options_.interrupted);
  options_.launch->secret.forget();
  engine_.set_tag_key(muster.tag_key);
  engine_.introduce(muster.ranks, static_cast<std::uint32_t>(rank_));
  lifeline_ = std::make_unique<Lifeline>(
      rank_, std::move(muster), Lifeline::Callbacks{describer(mine, launch.job), [this] { return may_halt(); }});
  engine_.set_explainer([this](const std::string& problem) { explain(problem); });
  exceptions_ = std::uncaught_exceptions();
  const bool crowded = is_crowded(lifeline_->ranks(), static_cast<std::size_t>(rank_));
  gpus_send_ = std::ranges::any_of(lifeline_->ranks(), &Introduction::gpus);
  turns_between_looks_ = crowded ? looks_when_crowded : looks_when_alone;
  watch_process_end(*this);
  ForkWatch::add(*this);
  if (*options_.progress_thread) need_progress_thread();
}

Session::~Session() {
  ForkWatch::remove(*this);
  // During unwinding the others must not believe that this rank has finished.
  if (is_unwinding()) abort("it has ended by an error");
  close_quietly();
  forget_process_end(*this);
  if (progress_thread_ && !forked_) progress_thread_->stop();
}

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
  locks_ = false;
  lifeline_->leave_to_parent(&why);
}

void Session::abort(const std::string& why) noexcept {
  if (!closed_ && !forked_) lifeline_->fail("rank " + std::to_string(rank_) + ": " + why);
}

Introduction Session::introduce(const Launch& launch) const {
  Introduction mine = waywiser::introduce(launch);
  mine.ucx = ucx_library().version();
  mine.plan = options_.chooser ? plan_fingerprint(*options_.chooser) : "";
  mine.address = engine_.address();
  mine.rails = engine_.rails();
  mine.gpus = options_.open_platform != nullptr || (options_.platform && options_.platform->gpu_count() > 0);
  mine.cores = cores_of_this_process();
  mine.mailbox = engine_.mailbox();
  mine.encrypted = engine_.encrypted();
  if (engine_.ways().tells_nodes_apart()) mine.node = options_.node ? *options_.node : node_of_this_machine();
  return mine;
}

// The others may still need answers from this rank's engine. There is no deadline: a rank may compute for hours while
// the others have finished, and a dead rank is detected.
void Session::close() {
  if (closed_ || forked_) return;
  const std::lock_guard lock(*this);
  std::exception_ptr problem;
  try {
    current_.set({CallKind::leave});
    if (watchdog_) watchdog_->settle();
  } catch (const Error&) {
    problem = std::current_exception();
  }
  closed_ = true;
  if (watchdog_ && !problem && lifeline_->failure() == nullptr) watchdog_->let_go();
  leave();
  // After an error GPUs of other ranks may still write to this one, until this object is destroyed.
  if (peer_memory_ && !problem && lifeline_->failure() == nullptr) peer_memory_->close();
  if (problem) std::rethrow_exception(problem);
}

void Session::leave() {
  bool was_interrupted = false;
  try {
    current_.set({CallKind::leave});
    fault_point(ProtocolStep::close);
    if (lifeline_->failure() == nullptr) lifeline_->leave();
    was_interrupted = !await_others(Deadline::in(longest_timeout));
    if (was_interrupted) lifeline_->fail("rank " + std::to_string(rank_) + ": interrupted in leave");
    if (lifeline_->failure() == nullptr) engine_.close(Deadline::in(closing_patience));
  } catch (const Error&) {  // the others report the reason
  }
  abandon_all();
  if (was_interrupted) throw Error(ErrorKind::interrupted, *lifeline_->failure());
}

// False: the others take longer, or the user wants to stop.
bool Session::await_others(Deadline patience) {
  Seconds ask_at = now_seconds() + between_questions;
  for (unsigned turn = 0; !lifeline_->finished() && lifeline_->failure() == nullptr; ++turn) {
    progress();
    if (turn < looks_when_alone)
      ::sched_yield();
    else if (patience.passed())
      return false;
    else
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    if (now_seconds() < ask_at) continue;
    ask_at = now_seconds() + between_questions;
    if (is_interrupted()) return false;
  }
  return true;
}

// Another thread may be inside a call while the process lives.
bool Session::part(Deadline patience) noexcept {
  if (forked_ || is_unwinding()) return true;
  if (!closed_ && lifeline_->failure() == nullptr && current_.is_any()) return false;
  const std::lock_guard lock(*this);
  if (!closed_ && lifeline_->failure() == nullptr) {
    options_.interrupted = nullptr;
    current_.set({CallKind::leave});
    bool are_gone = true;
    try {
      if (watchdog_) watchdog_->settle();
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
  if (code == 0) return close_quietly();
  if (progress_thread_) progress_thread_->stop();
  if (!closed_) lifeline_->end("ended with exit code " + std::to_string(code));
}

bool Session::is_interrupted() const { return fault_interrupts() || (options_.interrupted && options_.interrupted()); }

std::function<std::string()> Session::describer(const Introduction& mine, const std::string& job) const {
  return [this, mine, job] {
    const Seconds since = waiting_since_.load(std::memory_order_relaxed);
    const ProgressThread* thread = seen_thread_;
    return rank_status(mine, job, current_.get(), since == 0 ? 0 : now_seconds() - since,
                       thread == nullptr ? "" : core_text(options_.progress_core));
  };
}

const std::shared_ptr<Platform>& Session::shared_platform() {
  if (!options_.platform && options_.open_platform) options_.platform = options_.open_platform();
  if (!options_.platform)
    throw Error(ErrorKind::unavailable, "this rank has joined without a platform: host memory only");
  return options_.platform;
}

GpuConnections& Session::gpu_connections() {
  if (!gpu_connections_)
    gpu_connections_ = std::make_unique<GpuConnections>(platform(), peer_memory(), options_.chooser.get(), rank_ == 0);
  return *gpu_connections_;
}

PeerMemory& Session::peer_memory() {
  if (!peer_memory_) peer_memory_ = std::make_unique<PeerMemory>(platform(), timeout_);
  return *peer_memory_;
}

Watchdog& Session::watchdog() {
  if (!watchdog_) watchdog_ = std::make_unique<Watchdog>(*lifeline_, *options_.on_failure);
  return *watchdog_;
}

std::optional<unsigned> Session::take_rts_number() {
  if (rts_numbers_taken_.all()) return {};
  while (rts_numbers_taken_.test(next_rts_number_ % rts_numbers)) ++next_rts_number_;
  const unsigned number = next_rts_number_++ % rts_numbers;
  rts_numbers_taken_.set(number);
  return number;
}

std::string Session::why_staged(int rank) const {
  const auto found = why_staged_.find(rank);
  return found == why_staged_.end() ? "" : found->second;
}

void Session::set_timeout(Seconds timeout) {
  const std::lock_guard lock(*this);
  timeout_ = checked_timeout(timeout, "the timeout");
}

bool Session::stop_waiting(Watch& watch, const Call& call) {
  if (turns_between_looks_ == looks_when_crowded) ::sched_yield();
  if (const auto why = engine_.broken()) engine_.broken_by_an_end() ? explain(*why) : fail(ErrorKind::io, *why);
  const Seconds now = now_seconds();
  if (watch.started == 0) {
    watch.started = now;
    watch.tell_at = now + unusual_wait;
  }
  if (now - watch.started > long_wait) ::sched_yield();
  if (now > watch.tell_at) {
    if (const auto why = engine_.wrong_length()) fail(ErrorKind::invalid_input, text(call) + ": " + *why);
    lifeline_->tell_waiting(call);
    waiting_since_.store(watch.started, std::memory_order_relaxed);
    watch.tell_at = now + unusual_wait;
  }
  if (now > watch.ask_at) {
    watch.ask_at = now + between_questions;
    if (is_interrupted()) fail(ErrorKind::interrupted, "interrupted in " + text(call));
  }
  return now - watch.started > timeout_ + watch.longer;
}

std::string Session::waited_too_long(const Call& call, const std::string& progress) const {
  return "waited " + format_seconds(timeout_) + " in " + text(call) + ": " + progress;
}

bool Session::Watch::is_long() const { return started != 0 && now_seconds() - started > unusual_wait; }

std::string Session::own_wait(const Watch& watch, const Call& call, const std::string& progress) const {
  return "; rank " + std::to_string(rank_) + " itself had waited " + format_seconds(now_seconds() - watch.started) +
         " in " + text(call) + ": " + progress;
}

void Session::fail(ErrorKind kind, const std::string& why) {
  const std::string text = "rank " + std::to_string(rank_) + ": " + why;
  lifeline_->fail(text);
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
  abandon_all();
  throw Error(ErrorKind::io, why);
}

void Session::wait_for(Activity& operation) {
  const Call call = operation.call();
  const InCall in_call(*this, call);
  wait(call, [&] { return !is_under_way(operation); }, [&] { return operation.progress_text(); });
}

void Session::start(std::shared_ptr<Activity> operation) {
  {
    const Waiting waiting(waits_for_, *operation);
    if (advance(*operation)) return;
  }
  operation->under_way = true;
  auto& list = operation->needs_turns() ? under_way_ : by_themselves_;
  list.push_back(std::move(operation));
  if (by_themselves_.size() >= forget_at_) forget_complete();
  wake_thread();
}

// Complete operations are dropped lazily: the list is needed for those that fail.
void Session::forget_complete() {
  std::erase_if(by_themselves_, [this](const auto& operation) { return !is_under_way(*operation); });
  forget_at_ = std::max(first_forget, 2 * by_themselves_.size());
}

// If an operation fails, this throws; then the list is empty and its operations live on.
void Session::advance_all() {
  for (std::size_t i = 0; i < under_way_.size();) {
    Activity& operation = *under_way_[i];
    if (!advance(operation)) {
      ++i;
      continue;
    }
    operation.under_way = false;
    under_way_.erase(under_way_.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

void Session::leave_alone(const std::shared_ptr<Activity>& operation) {
  const auto known = std::ranges::find(by_themselves_, operation);
  if (known == by_themselves_.end()) return;
  by_themselves_.erase(known);
  under_way_.push_back(operation);  // so that its end is seen
}

void Session::give_up(Activity& operation) noexcept {
  if (forked_) return;
  const std::lock_guard lock(*this);
  if (lifeline_->failure() == nullptr)
    lifeline_->fail("rank " + std::to_string(rank_) + ": " + text(operation.call()) + " was given up");
  abandon(operation);
  abandon_all();
}

// Called after an exception. An error from outside the group also ends the group, since others wait for this rank.
void Session::end_after(const Call& call) {
  if (lifeline_->failure() == nullptr) {
    std::string why = "an error";
    try {
      throw;
    } catch (const std::exception& error) {
      why = error.what();
    } catch (...) {
    }
    lifeline_->fail("rank " + std::to_string(rank_) + ": " + text(call) + ": " + why);
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
    if (may_progress && waited < ending_patience)
      engine_.progress_ucx();
    else if (!engine_.held().has_own())
      halt();
    ::sched_yield();
  }
  halt();
}

// Within a machine the mailboxes say it too: rank 0, which forwards it, may be the dead rank.
bool Session::holds_nothing(std::uint32_t peer, bool look_at_process) {
  const bool halted = memory_use_ == MemoryUse::none && (static_cast<int>(peer) == rank_ || engine_.has_halted(peer) ||
                                                         lifeline_->has_halted(static_cast<int>(peer)));
  return halted ||
         (look_at_process && engine_.sees(peer) && process_has_ended(introduction(static_cast<int>(peer)).process));
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
  engine_.tell_halted();
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
  if (::syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0) != 0) return false;
  if (current_.get().kind != CallKind::none) return false;
  MemoryUse usual = MemoryUse::usual;
  if (!memory_use_.compare_exchange_strong(usual, MemoryUse::none)) return false;
  engine_.tell_halted();
  return true;
}

}  // namespace waywiser
