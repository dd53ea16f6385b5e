#include "waywiser/collective/gpu/begun_gpu_call.hpp"

#include <utility>

#include "waywiser/base/error.hpp"
#include "waywiser/collective/gpu/stream_operations.hpp"
#include "waywiser/comm/message/held_memory.hpp"
#include "waywiser/comm/session/session.hpp"

namespace waywiser {

BegunGpuCall::BegunGpuCall(Session& session, const Call& call, std::weak_ptr<StreamOperations> gpus,
                           std::shared_ptr<Event> end, std::shared_ptr<const CallComparison> comparison)
    : session_(session),
      call_(call),
      gpus_(std::move(gpus)),
      end_(std::move(end)),
      comparison_(std::move(comparison)) {}

// The child of a fork does not touch the parent's GPU.
BegunGpuCall::~BegunGpuCall() {
  if (session_.is_forked()) static_cast<void>(new std::shared_ptr<Event>(std::move(end_)));
}

bool BegunGpuCall::advance() {
  bool done = false;
  try {
    done = end_->done();
  } catch (const Error&) {
    explain();
    throw;
  }
  if (!done || (comparison_ && comparison_->under_way)) return false;
  explain();
  return true;
}

// The kernels that wait for other ranks trap, so that the stream ends.
void BegunGpuCall::abandon() noexcept {
  if (ended(*end_)) return;
  if (const auto gpus = gpus_.lock()) gpus->stop();
  session_.engine().held().add_own(static_cast<std::uint32_t>(session_.rank()), [end = end_] { return ended(*end); });
}

// A kernel itself reports the rank that it waited for, a little before.
Seconds BegunGpuCall::extra_time() const noexcept { return StreamOperations::kernels_speak; }

void BegunGpuCall::explain() {
  const auto gpus = gpus_.lock();
  if (!gpus) return;
  try {
    gpus->check();
  } catch (const Error& error) {
    session_.fail(error.kind(), text(call_) + ": " + error.what());
  }
}

}  // namespace waywiser
