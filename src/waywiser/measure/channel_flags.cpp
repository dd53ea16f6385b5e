#include "waywiser/measure/channel_flags.hpp"

#include <sched.h>

#include "waywiser/base/error.hpp"

namespace waywiser {
namespace {

constexpr Seconds send_patience = 10;

}  // namespace

void ChannelFlags::tell() { channel_.send({{"flag", true}}, Deadline::in(send_patience)); }

void ChannelFlags::wait(Deadline deadline, const std::function<void()>& idle) {
  while (!channel_.readable()) {
    if (idle) idle();
    ::sched_yield();
    if (deadline.passed()) throw Error(ErrorKind::timeout, "the peer process does not answer");
  }
  const Json message = channel_.receive(deadline).first;
  if (message.contains("error"))
    throw Error(ErrorKind::io,
                "in the peer process: " + require_string(message, "error", "answer of the peer process"));
  if (!message.contains("flag")) throw Error(ErrorKind::invalid_input, "message from the peer process: no flag");
}

}  // namespace waywiser
