#include "waywiser/comm/process_end.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "waywiser/comm/group.hpp"

namespace waywiser {
namespace {

constexpr Seconds parting_patience = 0.25;

struct Ending {
  std::mutex mutex;  // of all
  std::map<Session*, ::pid_t> alive;
  std::vector<std::pair<Group, ::pid_t>> kept;
};

// Never destroyed: exit() comes after the destructors of static objects.
Ending& ending() {
  static auto* const it = new Ending;
  return *it;
}

// In a forked child the groups are its parent's.
std::vector<Session*> alive_here() {
  const std::lock_guard lock(ending().mutex);
  std::vector<Session*> sessions;
  for (const auto& [session, process] : ending().alive)
    if (process == ::getpid()) sessions.push_back(session);
  return sessions;
}

void end_process(int status, void*) {
  const int code = status & 0xff;  // what the parent process sees
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

void end_with_process(Group group) noexcept {
  if (group.part(Deadline::in(parting_patience))) return;
  static_cast<void>(::on_exit(end_process, nullptr));  // before what others have registered: CUDA must be alive
  const std::lock_guard lock(ending().mutex);
  ending().kept.emplace_back(std::move(group), ::getpid());
}

void end_kept_groups() noexcept {
  std::vector<std::pair<Group, ::pid_t>> mine;
  {
    const std::lock_guard lock(ending().mutex);
    auto& kept = ending().kept;
    const auto first = std::ranges::partition(kept, [](const auto& one) { return one.second != ::getpid(); }).begin();
    std::move(first, kept.end(), std::back_inserter(mine));
    kept.erase(first, kept.end());
  }
}

}  // namespace waywiser
