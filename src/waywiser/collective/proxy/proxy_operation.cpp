#include "waywiser/collective/proxy/proxy_operation.hpp"

#include <algorithm>

#include "waywiser/base/error.hpp"

namespace waywiser {
namespace {

constexpr Seconds unusual_wait = 0.5;

}  // namespace

ProxyOperation::ProxyOperation(Session& session, const Call& call, std::shared_ptr<StreamGate> gate,
                               std::uint64_t begins, std::uint64_t ends, Parts parts)
    : session_(session),
      call_(call),
      gate_(std::move(gate)),
      begins_(begins),
      ends_(ends),
      turn_(gate_->take_turn()),
      parts_(std::move(parts)),
      opened_(ends == 0) {}

bool ProxyOperation::advance() {
  if (since_ == 0) {
    if (!gate_->has_turn(turn_) || gate_->reached() < begins_) return false;
    gate_->pass_turn();
    since_ = now_seconds();
    tell_at_ = since_ + unusual_wait;
  }
  std::erase_if(parts_, [](const auto& part) { return part->advance(); });
  let_stream_go();
  if (parts_.empty()) return true;
  look_at_clock();
  return false;
}

// Possible before all parts are over: sent data have been copied.
void ProxyOperation::let_stream_go() {
  if (opened_ || std::ranges::any_of(parts_, [](const auto& part) { return part->holds_stream(); })) return;
  opened_ = true;
  gate_->open(ends_);
}

void ProxyOperation::look_at_clock() {
  const Seconds now = now_seconds();
  if (now > tell_at_) {
    session_.tell_waiting(call_);
    tell_at_ = now + unusual_wait;
  }
  if (now - since_ > session_.timeout())
    session_.fail(ErrorKind::timeout, "waited " + format_seconds(session_.timeout()) + " in " + text(call_) +
                                          " on a stream: " + progress_text());
}

std::string ProxyOperation::progress_text() const {
  if (since_ == 0) return "the stream has not got there";
  return parts_.empty() ? "complete" : parts_.front()->progress_text();
}

void ProxyOperation::abandon() noexcept {
  for (const auto& part : parts_)
    if (since_ != 0) part->abandon();
}

}  // namespace waywiser
