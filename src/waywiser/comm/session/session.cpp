#include "waywiser/comm/session/session.hpp"

#include <sched.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <utility>

#include "waywiser/base/error.hpp"
#include "waywiser/base/started_thread.hpp"
#include "waywiser/base/timeout.hpp"
#include "waywiser/comm/bootstrap/rank_status.hpp"
#include "waywiser/comm/message/fault_point.hpp"
#include "waywiser/comm/peer_memory/gpu_connections.hpp"
#include "waywiser/comm/peer_memory/peer_memory.hpp"
#include "waywiser/comm/session/arrival.hpp"
#include "waywiser/comm/session/fork_watch.hpp"
#include "waywiser/comm/session/in_call.hpp"
#include "waywiser/comm/session/process_end.hpp"
#include "waywiser/comm/shared_memory/cores.hpp"
#include "waywiser/device/platform.hpp"

namespace waywiser {
namespace {

constexpr Seconds unusual_wait = 0.5;
const std::string waited = "waited ";
constexpr Seconds long_wait = 0.01;  // from then on it yields the core
constexpr Seconds between_questions = 0.05;
constexpr unsigned looks_when_alone = 1024, looks_when_crowded = 16;

}  // namespace

Session::Session(const JoinOptions& options) : Session(Arrival(options)) {}

Session::Session(Arrival&& arrival) try
    : SessionLock(arrival.options().threads),
      options_(arrival.options()),
      timeout_(arrival.timeout()),
      network_(arrival.network()),
      engine_(arrival.open_engine()),
      rank_(options_.launch->rank),
      gpus_(options_, timeout_, rank_) {
  arm_faults();
  make_thread_data();
  const Launch& launch = *options_.launch;
  options_.launch->secret.forget();
  arrival.introduce(engine_);
  Muster muster = std::move(arrival.muster());
  const Introduction mine = muster.ranks[static_cast<std::size_t>(rank_)];
  lifeline_ = std::make_unique<Lifeline>(
      rank_, std::move(muster), Lifeline::Callbacks{describer(mine, launch.job), [this] { return may_halt(); }});
  engine_.ucx().set_explainer([this](const std::string& problem) { explain(problem); });
  exceptions_ = std::uncaught_exceptions();
  const bool crowded = is_crowded(lifeline_->ranks(), static_cast<std::size_t>(rank_));
  gpus_.introduce(*lifeline_, std::ranges::any_of(lifeline_->ranks(), &Introduction::gpus));
  turns_between_looks_ = crowded ? looks_when_crowded : looks_when_alone;
  watch_process_end(*this, launch.root.has_value());
  ForkWatch::add(*this);
  if (*options_.progress_thread) need_progress_thread();
} catch (const Error& error) {
  arrival.leave(error);
}

Session::~Session() {
  ForkWatch::remove(*this);
  // During unwinding the others must not believe that this rank has finished.
  if (is_unwinding()) abort("it has ended by an error");
  close_quietly();
  forget_process_end(*this);
  if (progress_thread_ && !forked_) progress_thread_->stop();
}

std::string why_apart(const Session& session, int rank) {
  const Introduction& other = session.introduction(rank);
  if (other.system != session.introduction(session.rank()).system) return "it is on another machine, " + other.host;
  return "it is on another machine, or in another container, " + other.host;
}

// The program's function may wait for another thread of the program.
bool Session::is_interrupted() {
  const ThreadRuns others(*this, true);
  return fault_interrupts() || (options_.interrupted && options_.interrupted());
}

std::function<std::string()> Session::describer(const Introduction& mine, const std::string& job) const {
  return [this, mine, job] {
    const Seconds since = waiting_since_.load(std::memory_order_relaxed);
    const ProgressThread* thread = seen_thread_;
    return rank_status(mine, job, current_.get(), since == 0 ? 0 : now_seconds() - since,
                       thread == nullptr ? "" : core_text(options_.progress_core), engine_.sent());
  };
}

void Session::set_timeout(Seconds timeout) {
  const std::lock_guard lock(*this);
  timeout_ = checked_timeout(timeout, "the timeout");
}

void Session::look(Watch& watch) {
  if (const std::string* why = lifeline_->failure()) throw_failure(*why);
  if (!stop_waiting(watch)) return;
  fail(ErrorKind::timeout, waited + format_seconds(timeout_) + " in " + text(watch.call) + ": " + watch.progress());
}

bool Session::stop_waiting(Watch& watch) {
  if (turns_between_looks_ == looks_when_crowded) ::sched_yield();
  if (const auto why = engine_.broken()) engine_.broken_by_an_end() ? explain(*why) : fail(ErrorKind::io, *why);
  const Seconds now = now_seconds();
  if (watch.started == 0) {
    watch.started = now;
    watch.tell_at = now + unusual_wait;
  }
  if (now - watch.started > long_wait) ::sched_yield();
  if (now > watch.tell_at) {
    if (const auto why = engine_.wrong_length()) fail(ErrorKind::invalid_input, text(watch.call) + ": " + *why);
    lifeline_->tell_waiting(watch.call);
    waiting_since_.store(watch.started, std::memory_order_relaxed);
    watch.tell_at = now + unusual_wait;
  }
  if (now > watch.ask_at) {
    watch.ask_at = now + between_questions;
    if (is_interrupted()) fail(ErrorKind::interrupted, "interrupted in " + text(watch.call));
    if (const std::string* why = lifeline_->failure()) throw_failure(*why);
  }
  return now - watch.started > timeout_ + watch.longer;
}

bool Session::Watch::is_long() const { return started != 0 && now_seconds() - started > unusual_wait; }

// Which wait of this rank the timeout of another one has ended. The rank whose deadline passes first often waits for a
// rank that waits itself; this leads to the rank that all wait for.
std::string Session::own_wait(const std::string& failure) const {
  if (watch_ == nullptr || !watch_->is_long() || failure.find(": " + waited) == std::string::npos) return "";
  return "; rank " + std::to_string(rank_) + " itself had waited " + format_seconds(now_seconds() - watch_->started) +
         " in " + text(watch_->call) + ": " + watch_->progress();
}

void look_around(Session& session, const Call& call) {
  const Seconds now = now_seconds();
  if (session.closed_ || (session.lifeline_->failure() == nullptr && now < session.ask_at_)) return;
  session.ask_at_ = now + between_questions;
  const InCall in_call(session, call, nullptr);
  if (session.is_interrupted()) session.fail(ErrorKind::interrupted, "interrupted in " + text(call));
}

void Session::wait_for(Activity& operation) {
  const Call call = operation.call();
  const InCall in_call(*this, call);
  try {
    wait(
        call, [&] { return !is_under_way(operation); }, [&] { return operation.progress_text(); },
        operation.extra_time());
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::interrupted) operation.explain();
    throw;
  }
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

}  // namespace waywiser
