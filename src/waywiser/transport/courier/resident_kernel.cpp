#include "waywiser/transport/courier/resident_kernel.hpp"

#include <atomic>
#include <new>
#include <thread>

#include "waywiser/base/error.hpp"
#include "waywiser/transport/courier/courier_kernel.hpp"
#include "waywiser/transport/courier/packets.hpp"

namespace waywiser {
namespace {

constexpr Seconds goodbye = 1;

std::uint64_t nanoseconds(Seconds seconds) { return static_cast<std::uint64_t>(seconds * 1e9); }

}  // namespace

ResidentKernel::ResidentKernel(Platform& platform, Place gpu, Place host, const CourierOptions& options)
    : options_(options),
      gpu_(gpu),
      stream_(platform.open_stream(gpu)),
      memory_(platform.allocate(host, sizeof(Mailbox), Allocation::pinned)),
      box_(new (memory_.region().data) Mailbox{}) {
  if (options_.warps == 0 || options_.warps > most_warps)
    throw Error(ErrorKind::invalid_input, "courier: 1 to " + std::to_string(most_warps) + " warps are possible");
}

ResidentKernel::~ResidentKernel() {
  try {
    if (launch_ != 0) stream_->synchronize(Deadline::in(goodbye));
  } catch (const Error&) {  // it may still read the mailbox: leave that to the end of the process
    static_cast<void>(new (std::nothrow) Memory(std::move(memory_)));
    static_cast<void>(stream_.release());
  }
}

bool ResidentKernel::parked() const { return std::atomic_ref(box_->parked).load(std::memory_order_acquire) == launch_; }

void ResidentKernel::ensure_running(std::uint32_t last_number, Deadline deadline) {
  if (!parked()) return;
  if (launch_ != 0) stream_->synchronize(deadline);
  ++launch_;
  auto* box = reinterpret_cast<Mailbox*>(stream_->reach(memory_.region()));
  stream_->launch(courier_kernel(
      {box, last_number, launch_, nanoseconds(options_.idle), nanoseconds(options_.residence),
       static_cast<unsigned>(nanoseconds(options_.put_rest)), static_cast<unsigned>(nanoseconds(options_.get_rest))},
      options_.warps));
}

void ResidentKernel::attend(std::uint32_t last_number, Deadline deadline) {
  ensure_running(last_number, deadline);
  if (deadline.passed())
    throw Error(ErrorKind::timeout, "courier: the resident kernel on " + text(gpu_) + " did not answer in time");
  static_cast<void>(stream_->done());
  std::this_thread::yield();
}

void ResidentKernel::end(std::uint32_t number, Deadline deadline) {
  stop(number);
  if (launch_ != 0) stream_->synchronize(deadline);
}

void ResidentKernel::stop(std::uint32_t number) {
  if (parked()) return;
  post_message(box_->order, {Task::stop, 0, nullptr}, nullptr, number);
}

}  // namespace waywiser
