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
  KeptBy<Shared> shared;
  KeptBy<std::unique_ptr<Session>> sessions;
};

// Never destroyed: exit handlers run after the destructors of static objects.
Ending& ending() {
  static auto* const it = new Ending;
  return *it;
}

void end_process(int status, void*);

// In a forked child the groups belong to the parent.
std::vector<Session*> alive_here() {
  const std::lock_guard lock(ending().mutex);
  std::vector<Session*> sessions;
  for (const auto& [session, process] : ending().alive)
    if (process == ::getpid()) sessions.push_back(session);
  return sessions;
}

template <typename Kept>
void keep(KeptBy<Kept>& all, Kept one) {
  static_cast<void>(::on_exit(end_process, nullptr));  // runs before handlers registered earlier: CUDA must be alive
  const std::lock_guard lock(ending().mutex);
  all.emplace_back(std::move(one), ::getpid());
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

void end_process(int status, void*) {
  const int code = status & 0xff;  // as the parent process sees it
  for (Session* session : alive_here()) session->end(code);
  if (code == 0) end_kept_groups();
}

}  // namespace

void watch_process_end(Session& session) {
  static const int registered = ::on_exit(end_process, nullptr);
  static_cast<void>(registered);
  const std::lock_guard lock(ending().mutex);
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
