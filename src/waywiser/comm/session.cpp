#include "waywiser/comm/session.hpp"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <exception>
#include <iterator>
#include <thread>
#include <utility>

#include "waywiser/base/environment.hpp"
#include "waywiser/base/error.hpp"
#include "waywiser/comm/cores.hpp"
#include "waywiser/comm/gpu_roads.hpp"
#include "waywiser/comm/plan_fingerprint.hpp"
#include "waywiser/comm/process_end.hpp"
#include "waywiser/comm/rank_status.hpp"
#include "waywiser/device/platform.hpp"
#include "waywiser/policy/chooser.hpp"

namespace waywiser {
namespace {

constexpr Seconds default_timeout = 60;
constexpr Seconds longest_timeout = 1e7;
constexpr Seconds unusual_wait = 0.5;
constexpr Seconds long_wait = 0.01;  // from here on others get the core
constexpr Seconds closing_patience = 5;
constexpr Seconds between_questions = 0.05;
constexpr Seconds news_patience = 2;
constexpr unsigned looks_when_alone = 1024, looks_when_crowded = 16;

Seconds checked_timeout(Seconds timeout, const std::string& what) {
  if (!(timeout > 0 && timeout <= longest_timeout))
    throw Error(ErrorKind::invalid_input, what + " must be a number of seconds above 0");
  return timeout;
}

Seconds chosen_timeout(const JoinOptions& options) {
  if (options.timeout) return checked_timeout(*options.timeout, "the timeout");
  const auto text = environment("WAYWISER_TIMEOUT");
  if (!text) return default_timeout;
  Seconds value = 0;
  const auto [end, problem] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (problem != std::errc() || end != text->data() + text->size()) value = 0;
  return checked_timeout(value, "WAYWISER_TIMEOUT='" + text->substr(0, 40) + "'");
}

// What WAYWISER_PLAN names, if anything. Throws invalid_input.
std::shared_ptr<const Chooser> plan_of_environment() {
  const auto file = environment("WAYWISER_PLAN");
  if (!file || file->empty()) return {};
  return std::make_shared<const Chooser>(plan_from_json(read_json(*file), *file));
}

JoinOptions with_environment(JoinOptions options) {
  if (!options.launch) options.launch = read_launch();
  if (!options.chooser) options.chooser = plan_of_environment();
  // Without proofs ranks of one machine are still known to the kernel.
  if (is_within_a_machine(*options.launch) && options.launch->root && !why_no_crypto().empty())
    options.launch->root.reset();
  if (!options.on_failure) options.on_failure = parse_on_failure(environment("WAYWISER_ON_FAILURE").value_or("raise"));
  return options;
}

JobNetwork chosen_network(const JoinOptions& options) {
  JobNetwork network = job_network(*options.launch, options.chooser ? &options.chooser->plan() : nullptr);
  if (!network.note.empty() && options.launch->rank == 0)
    std::fputs(("waywiser: " + network.note + "\n").c_str(), stderr);
  return network;
}

}  // namespace

Session::Session(const JoinOptions& options)
    : options_(with_environment(options)),
      timeout_(chosen_timeout(options)),
      network_(chosen_network(options_)),
      engine_(static_cast<std::size_t>(options_.launch->size), network_.settings,
              NetworkWays(network_.within_a_machine ? nullptr : options_.chooser)),
      rank_(options_.launch->rank) {
  const Launch& launch = *options_.launch;
  const Introduction mine = introduce(launch);
  Muster muster = meet(launch, mine, Deadline::in(timeout_), options_.announce);
  options_.launch->secret.forget();
  engine_.set_tag_key(muster.tag_key);
  lifeline_ = std::make_unique<Lifeline>(rank_, std::move(muster), describer(mine, launch.job));
  engine_.introduce(lifeline_->ranks(), static_cast<std::uint32_t>(rank_));
  engine_.set_explainer([this](const std::string& problem) { explain(problem); });
  exceptions_ = std::uncaught_exceptions();
  const bool crowded = is_crowded(lifeline_->ranks(), static_cast<std::size_t>(rank_));
  gpus_send_ = std::ranges::any_of(lifeline_->ranks(), &Introduction::gpus);
  turns_between_looks_ = crowded ? looks_when_crowded : looks_when_alone;
  watch_process_end(*this);
}

Session::~Session() {
  // Unwinding: the others must not take this rank for one that has finished.
  if (std::uncaught_exceptions() > exceptions_) abort("it has ended by an error");
  close_quietly();
  forget_process_end(*this);
}

void Session::abort(const std::string& why) noexcept {
  if (!closed_) lifeline_->fail("rank " + std::to_string(rank_) + ": " + why);
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
  return mine;
}

// The others may still need answers of this rank's engine. There is no deadline: a rank may compute for hours while the
// others have finished, and one that dies is noticed.
void Session::close() {
  if (closed_) return;
  std::exception_ptr problem;
  try {
    if (watchdog_) watchdog_->settle();
  } catch (const Error&) {
    problem = std::current_exception();
  }
  closed_ = true;
  leave();
  if (problem) std::rethrow_exception(problem);
}

void Session::close_quietly() noexcept {
  try {
    close();
  } catch (const Error&) {  // the watchdog has printed what a GPU's operation has failed with
  }
}

void Session::leave() noexcept {
  try {
    current_.set({CallKind::leave});
    if (lifeline_->failure() == nullptr) lifeline_->leave();
    await_others(Deadline::in(longest_timeout));
    if (lifeline_->failure() == nullptr) engine_.close(Deadline::in(closing_patience));
  } catch (const Error&) {  // what it would say, the others say
  }
  abandon_all();
}

// False: they take longer than that.
bool Session::await_others(Deadline patience) {
  for (unsigned turn = 0; !lifeline_->finished() && lifeline_->failure() == nullptr; ++turn) {
    engine_.progress();
    if (turn < looks_when_alone)
      ::sched_yield();
    else if (patience.passed())
      return false;
    else
      std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  return true;
}

// Another thread may be inside a call, as long as the process lives.
bool Session::part(Deadline patience) noexcept {
  if (!closed_ && lifeline_->failure() == nullptr) {
    options_.interrupted = nullptr;
    if (current_.get().kind != CallKind::none) return false;
    try {
      if (watchdog_) watchdog_->settle();
      lifeline_->part();
      if (!await_others(patience)) return false;
    } catch (const Error&) {  // what it would say, the others say
    }
  }
  close_quietly();
  return true;
}

void Session::end(int code) noexcept {
  if (code == 0) return close_quietly();
  if (!closed_) lifeline_->end("ended with exit code " + std::to_string(code));
}

std::function<std::string()> Session::describer(const Introduction& mine, const std::string& job) const {
  return [this, mine, job] {
    const Seconds since = waiting_since_.load(std::memory_order_relaxed);
    return rank_status(mine, job, current_.get(), since == 0 ? 0 : now_seconds() - since);
  };
}

const std::shared_ptr<Platform>& Session::shared_platform() {
  if (!options_.platform && options_.open_platform) options_.platform = options_.open_platform();
  if (!options_.platform)
    throw Error(ErrorKind::unavailable, "this rank has joined without a platform: host memory only");
  return options_.platform;
}

GpuRoads& Session::gpu_roads() {
  if (!gpu_roads_) gpu_roads_ = std::make_unique<GpuRoads>(platform(), options_.chooser.get(), rank_ == 0);
  return *gpu_roads_;
}

Watchdog& Session::watchdog() {
  if (!watchdog_) watchdog_ = std::make_unique<Watchdog>(*lifeline_, *options_.on_failure);
  return *watchdog_;
}

std::optional<unsigned> Session::take_announcement_number() {
  if (announced_.all()) return {};
  while (announced_.test(next_announcement_ % announcement_numbers)) ++next_announcement_;
  const unsigned number = next_announcement_++ % announcement_numbers;
  announced_.set(number);
  return number;
}

std::string Session::why_staged(int rank) const {
  const auto found = why_staged_.find(rank);
  return found == why_staged_.end() ? "" : found->second;
}

void Session::set_timeout(Seconds timeout) { timeout_ = checked_timeout(timeout, "the timeout"); }

bool Session::stop_waiting(Watch& watch, const Call& call) {
  if (turns_between_looks_ == looks_when_crowded) ::sched_yield();
  if (const std::string* why = lifeline_->failure()) throw_failure(*why);
  if (const auto why = engine_.broken()) fail(ErrorKind::io, *why);
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
  if (options_.interrupted && now > watch.ask_at) {
    watch.ask_at = now + between_questions;
    if (options_.interrupted()) fail(ErrorKind::interrupted, "interrupted in " + text(call));
  }
  return now - watch.started > timeout_ + watch.longer;
}

std::string Session::waited_too_long(const Call& call, const std::string& progress) const {
  return "waited " + format_seconds(timeout_) + " in " + text(call) + ": " + progress;
}

void Session::fail(ErrorKind kind, const std::string& why) {
  const std::string text = "rank " + std::to_string(rank_) + ": " + why;
  lifeline_->fail(text);
  abandon_all();
  throw Error(kind, text);
}

// UCX may notice that a rank has died before the life-line tells which and how.
void Session::explain(const std::string& problem) {
  for (const Deadline deadline = Deadline::in(news_patience); !deadline.passed(); ::sched_yield())
    if (const std::string* why = lifeline_->failure()) throw_failure(*why);
  fail(ErrorKind::io, problem);
}

void Session::throw_closed() { throw Error(ErrorKind::invalid_input, "the group is closed"); }

void Session::throw_failure(const std::string& why) {
  abandon_all();
  throw Error(ErrorKind::io, why);
}

void Session::start(std::shared_ptr<Activity> operation) {
  if (operation->advance()) return;
  operation->under_way = true;
  auto& list = operation->needs_turns() ? under_way_ : by_themselves_;
  list.push_back(std::move(operation));
  if (by_themselves_.size() >= forget_at_) forget_complete();
}

// The list is kept for those that fail: what it holds of complete ones is not more than of others.
void Session::forget_complete() {
  std::erase_if(by_themselves_, [this](const auto& operation) { return !is_under_way(*operation); });
  forget_at_ = std::max(first_forget, 2 * by_themselves_.size());
}

// An operation that fails throws; the list is empty then, and what was in it lives on.
void Session::advance_all() {
  for (std::size_t i = 0; i < under_way_.size();) {
    Activity& operation = *under_way_[i];
    if (!operation.advance()) {
      ++i;
      continue;
    }
    operation.under_way = false;
    under_way_.erase(under_way_.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

void Session::abandon_all() noexcept {
  for (auto* list : {&under_way_, &by_themselves_}) {
    for (const auto& operation : *list) {
      if (operation->under_way) operation->abandon();
      operation->under_way = false;
    }
    std::ranges::move(*list, std::back_inserter(abandoned_));
    list->clear();
  }
}

}  // namespace waywiser
