#pragma once

#include <csignal>
#include <thread>
#include <utility>

namespace waywiser_nixl {

// A thread that gets no signals: they are for the program's threads.
template <typename Call>
std::thread quiet_thread(Call call) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread made;
  try {
    made = std::thread(std::move(call));
  } catch (...) {
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    throw;
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return made;
}

}  // namespace waywiser_nixl
