#include "waywiser/comm/session/fork_watch.hpp"

#include <pthread.h>

#include "waywiser/comm/session/session.hpp"

namespace waywiser {

ForkWatch::ForkWatch() { ::pthread_atfork(before, after_in_parent, after_in_child); }

ForkWatch& ForkWatch::of_this_process() {
  static auto* const watch = new ForkWatch;  // never destroyed: exit handlers may fork
  return *watch;
}

void ForkWatch::add(Session& session) {
  ForkWatch& watch = of_this_process();
  const std::lock_guard lock(watch.mutex_);
  watch.sessions_.push_back(&session);
}

void ForkWatch::remove(Session& session) noexcept {
  ForkWatch& watch = of_this_process();
  const std::lock_guard lock(watch.mutex_);
  std::erase(watch.sessions_, &session);
}

void ForkWatch::after_in_child() {
  ForkWatch& watch = of_this_process();
  for (Session* session : watch.sessions_) session->leave_to_parent();
  watch.sessions_.clear();
  watch.mutex_.unlock();
}

}  // namespace waywiser
