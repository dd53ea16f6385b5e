#include "waywiser/sim/event_loop.hpp"

#include <algorithm>
#include <cmath>

#include "waywiser/base/error.hpp"

namespace waywiser::sim {
namespace {

// Ends that differ by rounding only are one moment.
constexpr double same_moment = 1e-12;

}  // namespace

void EventLoop::push(Seconds at, Kind kind, std::uint32_t flow, std::uint32_t version, Listener* who,
                     std::uint64_t token) {
  queue_.push({at, numbers_++, flow, version, who, token, kind});
}

void EventLoop::after(Seconds seconds, Listener& who, std::uint64_t token) {
  if (!(seconds >= 0) || !std::isfinite(seconds))
    throw Error(ErrorKind::invalid_input, "a simulated delay must be finite and not negative");
  push(now_ + seconds, Kind::wake, 0, 0, &who, token);
}

void EventLoop::transfer(std::span<const Use> uses, BytesPerSecond cap, double bytes, Seconds latency, Listener& who,
                         std::uint64_t token) {
  if (bytes <= 0 || (uses.empty() && cap == no_cap)) return after(latency, who, token);
  if (free_waiting_.empty()) {
    free_waiting_.push_back(static_cast<std::uint32_t>(waiting_.size()));
    waiting_.emplace_back();
  }
  const std::uint32_t slot = free_waiting_.back();
  free_waiting_.pop_back();
  waiting_[slot].uses.assign(uses.begin(), uses.end());
  waiting_[slot].cap = cap;
  waiting_[slot].bytes = bytes;
  push(now_ + latency, Kind::begin, slot, 0, &who, token);
}

// The end of a flow that was computed before its rate changed.
bool EventLoop::is_void(const Event& event) const {
  return event.kind == Kind::end && moving_[event.flow].version != event.version;
}

void EventLoop::run(const std::function<bool()>& go_on) {
  while (!queue_.empty() && (!go_on || go_on())) {
    if (is_void(queue_.top())) {
      queue_.pop();
      continue;
    }
    const Seconds moment = queue_.top().at;
    now_ = std::max(now_, moment);
    const Seconds last = now_ * (1 + same_moment);
    while (!queue_.empty() && queue_.top().at <= last) {
      const Event event = queue_.top();
      queue_.pop();
      serve(event);
    }
    settle();
  }
}

void EventLoop::serve(const Event& event) {
  if (event.kind == Kind::wake) {
    ++events_;
    event.who->wake(event.token);
  } else if (event.kind == Kind::begin) {
    begin(event);
  } else if (!is_void(event)) {
    end(event);
  }
}

void EventLoop::begin(const Event& event) {
  ++events_;
  ++flows_begun_;
  Waiting& waiting = waiting_[event.flow];
  const FlowId flow = network_.start(waiting.uses, waiting.cap);
  free_waiting_.push_back(event.flow);
  if (flow >= moving_.size()) moving_.resize(flow + 1);
  Moving& moving = moving_[flow];
  moving = {waiting.bytes, 0, now_, moving.version + 1, event.who, event.token};
  if (std::isfinite(waiting.bytes)) moved_ += waiting.bytes;
}

void EventLoop::end(const Event& event) {
  ++events_;
  Moving& moving = moving_[event.flow];
  ++moving.version;
  network_.finish(event.flow);
  moving.who->wake(moving.token);
}

void EventLoop::settle() {
  network_.solve();
  for (const FlowId flow : network_.changed()) {
    Moving& moving = moving_[flow];
    moving.left = std::max(0.0, moving.left - moving.rate * (now_ - moving.since));
    moving.since = now_;
    moving.rate = network_.rate(flow);
    if (std::isfinite(moving.left))
      push(now_ + moving.left / moving.rate, Kind::end, flow, ++moving.version, nullptr, 0);
  }
}

}  // namespace waywiser::sim
