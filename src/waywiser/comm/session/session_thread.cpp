// The parts of Session that run outside the program's calls.
#include <sched.h>

#include <utility>

#include "waywiser/base/error.hpp"
#include "waywiser/comm/peer_memory/gpu_connections.hpp"
#include "waywiser/comm/peer_memory/peer_memory.hpp"
#include "waywiser/comm/session/session.hpp"
#include "waywiser/device/stream.hpp"

namespace waywiser {
namespace {

constexpr Seconds between_looks_for_signals = 0.05;

}  // namespace

void Session::need_progress_thread() {
  if (progress_thread_ || closed_ || forked_) return;
  progress_thread_ = std::make_unique<ProgressThread>([this] { return turn_of_thread(); }, options_.progress_core);
  for (int call = 0; call < depth_; ++call) progress_thread_->lock();  // once for each call around this one
  locks_ = true;
  seen_thread_ = progress_thread_.get();
  progress_thread_->start();  // it sees all this, and gets no turn before those calls end
}

// If the group fails between two calls, the thread does what the next call would do.
ProgressThread::Found Session::turn_of_thread() noexcept {
  using Found = ProgressThread::Found;
  const std::size_t before = under_way_.size() + by_themselves_.size();
  try {
    if (closed_) return Found::nothing;
    if (lifeline_->failure() == nullptr) progress();
    if (const auto why = engine_.broken(); why && lifeline_->failure() == nullptr)
      engine_.broken_by_an_end() ? explain(*why) : fail(ErrorKind::io, *why);
    if (lifeline_->failure() == nullptr) forget_complete();
  } catch (const std::exception& error) {
    if (lifeline_->failure() == nullptr) lifeline_->fail("rank " + std::to_string(rank_) + ": " + error.what());
  }
  if (lifeline_->failure() != nullptr) {
    abandon_all();
    return Found::end;
  }
  const std::size_t left = under_way_.size() + by_themselves_.size();
  if (left == 0) return Found::nothing;
  return std::exchange(moved_, false) || left < before ? Found::moved : Found::waits;
}

void Session::settle(const Event& event, Deadline deadline) {
  Seconds ask_at = now_seconds() + between_looks_for_signals;
  try {
    for (; !ended(event) && !deadline.passed() && lifeline_->failure() == nullptr; ::sched_yield()) {
      progress();
      if (now_seconds() < ask_at || current_.get().kind != CallKind::leave) continue;
      ask_at = now_seconds() + between_looks_for_signals;
      if (is_interrupted()) fail(ErrorKind::interrupted, "interrupted in leave");
    }
  } catch (const Error& error) {  // the group has failed: the GPU's error says more
    if (error.kind() == ErrorKind::interrupted) throw;
  }
  event.synchronize(deadline);
}

}  // namespace waywiser
