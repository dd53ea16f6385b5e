#include "waywiser/measure/remote_machine.hpp"

#include <chrono>

#include "waywiser/base/error.hpp"
#include "waywiser/base/started_thread.hpp"

namespace waywiser {
namespace {

constexpr Seconds order_patience = 5;

}  // namespace

RemoteMachine::RemoteMachine(PeerSocket line, std::string host, Meet meet, Seconds interval)
    : channel_(std::move(line)), host_(std::move(host)), meet_(std::move(meet)), interval_(interval) {
  thread_ = started_thread([this] { show_life(); });
}

RemoteMachine::~RemoteMachine() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  ending_changed_.notify_all();
  thread_.join();
}

PeerSocket RemoteMachine::connect() {
  {
    const std::lock_guard lock(mutex_);
    if (channel_.peer_ended()) throw Error(ErrorKind::io, "rank 1 on " + host_ + " has ended");
    tell("connect");
  }
  return meet_();
}

void RemoteMachine::dismiss() noexcept {
  const std::lock_guard lock(mutex_);
  try {
    tell("end");
  } catch (const std::exception&) {  // it has ended already
  }
}

void RemoteMachine::tell(const char* what) { channel_.send({{"do", what}}, Deadline::in(order_patience)); }

void RemoteMachine::show_life() {
  std::unique_lock lock(mutex_);
  while (!ending_) {
    try {
      tell("alive");
    } catch (const std::exception&) {
      return;  // the next user of rank 1 hears that it has ended
    }
    ending_changed_.wait_for(lock, std::chrono::duration<double>(interval_), [this] { return ending_; });
  }
}

}  // namespace waywiser
