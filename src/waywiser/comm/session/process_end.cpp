#include "waywiser/comm/session/process_end.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "waywiser/comm/session/session.hpp"

namespace waywiser {

void end_process(int status, void*);

namespace {

constexpr Seconds parting_patience = 0.25;

template <typename Kept>
using KeptBy = std::vector<std::pair<Kept, ::pid_t>>;

struct Shared {
  std::shared_ptr<Session> session;
  std::shared_ptr<void> keeps;  // destroyed first
};

struct Ending {
  std::mutex mutex;  // guards everything
  std::map<Session*, ::pid_t> alive;
  std::map<BeforeProcessEnd*, ::pid_t> before;
  KeptBy<Shared> shared;
  KeptBy<std::unique_ptr<Session>> sessions;
  ::pid_t registered_in = 0, before_openssl_in = 0;  // processes in which end_process() is an exit handler
};

// Never destroyed: exit handlers run after the destructors of static objects.
Ending& ending() {
  static auto* const it = new Ending;
  return *it;
}

// In a forked child the groups belong to the parent.
template <typename Registered>
std::vector<Registered*> of_this_process(const std::map<Registered*, ::pid_t>& all) {
  const std::lock_guard lock(ending().mutex);
  std::vector<Registered*> mine;
  for (const auto& [one, process] : all)
    if (process == ::getpid()) mine.push_back(one);
  return mine;
}

template <typename Kept>
void keep(KeptBy<Kept>& all, Kept one) {
  static_cast<void>(::on_exit(end_process, nullptr));  // runs before handlers registered earlier: CUDA must be alive
  const std::lock_guard lock(ending().mutex);
  all.emplace_back(std::move(one), ::getpid());
}

// Handlers run in reverse order. A forked process registers it again: before what it has registered itself meanwhile.
void register_in(::pid_t& process) {
  if (std::exchange(process, ::getpid()) != ::getpid()) ::on_exit(end_process, nullptr);
}

// Takes the entries that belong to this process.
template <typename Kept>
KeptBy<Kept> taken(KeptBy<Kept>& all) {
  const std::lock_guard lock(ending().mutex);
  KeptBy<Kept> mine;
  const auto first = std::ranges::partition(all, [](const auto& one) { return one.second != ::getpid(); }).begin();
  std::move(first, all.end(), std::back_inserter(mine));
  all.erase(first, all.end());
  return mine;
}

}  // namespace

void end_process(int status, void*) {
  const int code = status & 0xff;  // as the parent process sees it
  if (code == 0)
    for (const BeforeProcessEnd* one : of_this_process(ending().before)) one->end_();
  for (Session* session : of_this_process(ending().alive)) session->end(code);
  if (code == 0) end_kept_groups();
}

BeforeProcessEnd::BeforeProcessEnd(std::function<void()> end) : end_(std::move(end)) {
  const std::lock_guard lock(ending().mutex);
  ending().before[this] = ::getpid();
}

BeforeProcessEnd::~BeforeProcessEnd() {
  const std::lock_guard lock(ending().mutex);
  ending().before.erase(this);
}

// OpenSSL's own end is an exit handler too, registered on its first use: the threads that use it must have ended
// before.
void watch_process_end(Session& session, bool sealed) {
  const std::lock_guard lock(ending().mutex);
  register_in(ending().registered_in);
  if (sealed) register_in(ending().before_openssl_in);
  ending().alive[&session] = ::getpid();
}

void forget_process_end(Session& session) noexcept {
  const std::lock_guard lock(ending().mutex);
  ending().alive.erase(&session);
}

void end_with_process(std::shared_ptr<Session> session, std::shared_ptr<void> keeps) noexcept {
  if (!session->part(Deadline::in(parting_patience)))
    keep(ending().shared, Shared{std::move(session), std::move(keeps)});
}

void end_with_process(std::unique_ptr<Session> session) noexcept {
  if (!session->part(Deadline::in(parting_patience))) keep(ending().sessions, std::move(session));
}

void end_kept_groups() noexcept {
  for (auto& [shared, process] : taken(ending().shared)) shared.session->close_quietly();
  for (auto& [session, process] : taken(ending().sessions)) session->close_quietly();
}

}  // namespace waywiser
