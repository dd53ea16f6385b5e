// What ends the waits of a heap: the group has failed, or this rank is interrupted.
#include <atomic>

#include "waywiser/comm/session/in_call.hpp"
#include "waywiser/heap/heap_state.hpp"

namespace waywiser {
namespace {

constexpr Seconds stopping_patience = 5;  // with a kernel that has been told to stop

}  // namespace

HeapWard::HeapWard(Session& session, one_sided::FaultNotice& notice) : session_(session), notice_(notice) {
  session_.gpus().watchdog().add(*this);
}

HeapWard::~HeapWard() {
  if (!session_.is_forked()) session_.gpus().watchdog().remove(*this);
}

void HeapWard::stop() noexcept { std::atomic_ref(notice_.stopped).store(1, std::memory_order_release); }

std::string Heap::State::why_failed() const {
  const std::string why = session().failure();
  return why.empty() ? "this rank has given up" : why;
}

Call Heap::State::wait_call() const {
  Call call;
  call.kind = CallKind::wait;
  call.group = members_of(group)->key();
  return call;
}

void Heap::State::look() const { look_around(session(), wait_call()); }

// After an error the kernel must not outlive what it waits in.
void Heap::State::await(Stream& stream) const {
  try {
    const Call call = wait_call();
    const InCall in_call(session(), call);
    session().wait(
        call, [&] { return stream.done(); }, [] { return std::string("the GPU has not finished"); }, deadline);
  } catch (const Error& error) {
    if (session().is_forked()) throw;
    ward->stop();
    try {
      stream.synchronize(Deadline::in(stopping_patience));
    } catch (const Error&) {  // its own error comes below
    }
    if (error.kind() == ErrorKind::interrupted) throw;
    if (const auto why = fault()) throw Error(*why);
    if (const std::string why = session().failure(); !why.empty()) throw Error(session().failure_kind(), why);
    throw;
  }
}

}  // namespace waywiser
