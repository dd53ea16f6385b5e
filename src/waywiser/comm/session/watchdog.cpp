#include "waywiser/comm/session/watchdog.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "waywiser/base/error.hpp"
#include "waywiser/base/started_thread.hpp"
#include "waywiser/comm/session/lifeline.hpp"

namespace waywiser {
namespace {

constexpr std::chrono::milliseconds between_looks{20};
constexpr Seconds patience_with_driver = 5;

}  // namespace

Watchdog::Watchdog(Lifeline& lifeline, OnFailure on_failure)
    : lifeline_(lifeline), on_failure_(on_failure), thread_(started_thread([this] { watch(); })) {}

Watchdog::~Watchdog() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Watchdog::add(Ward& ward) {
  const std::lock_guard lock(mutex_);
  wards_.push_back({&ward});
}

// A failure is still reported.
void Watchdog::remove(Ward& ward) {
  const std::lock_guard lock(mutex_);
  for (Watched& each : wards_)
    if (each.ward == &ward) look_at(each);
  std::erase_if(wards_, [&](const Watched& each) { return each.ward == &ward; });
}

void Watchdog::report() {
  const std::lock_guard lock(mutex_);
  for (Watched& each : wards_)
    if (!each.told) look_at(each);
}

std::vector<Watchdog::Ward*> Watchdog::wards() {
  std::vector<Ward*> wards;
  const std::lock_guard lock(mutex_);
  for (const Watched& each : wards_) wards.push_back(each.ward);
  return wards;
}

void Watchdog::settle() {
  for (Ward* ward : wards()) ward->settle();
}

void Watchdog::let_go() noexcept {
  for (Ward* ward : wards()) ward->let_go();
}

void Watchdog::watch() {
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, between_looks, [this] { return ending_; }))
    for (Watched& each : wards_) look_at(each);
}

void Watchdog::look_at(Watched& watched) {
  const std::string* group = lifeline_.failure();
  if (group != nullptr && !watched.stopped) {
    watched.stopped = true;
    watched.ward->stop();
  }
  if (watched.told) return see_it_gone(watched);
  if (const auto why = watched.ward->failure(group == nullptr ? "" : *group)) {
    watched.told = true;
    watched.told_at = now_seconds();
    tell(*why);
  }
}

// If the driver did not end a trapped kernel, the program would wait forever.
void Watchdog::see_it_gone(Watched& watched) {
  if (!watched.gone) watched.gone = watched.ward->is_gone();
  if (watched.gone) return;
  if (now_seconds() - watched.told_at < patience_with_driver) return;
  std::fputs("waywiser: the GPU has not ended the operation that has failed: the process ends\n", stderr);
  std::fflush(stderr);
  std::_Exit(1);
}

void Watchdog::tell(const Error& why) {
  std::fputs((std::string("waywiser: ") + why.what() + "\n").c_str(), stderr);
  std::fflush(stderr);
  lifeline_.fail(why.kind(), why.what());
  if (on_failure_ == OnFailure::abort) std::_Exit(1);
}

}  // namespace waywiser
