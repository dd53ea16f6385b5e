#include "waywiser/transport/courier/resident_kernel.hpp"

#include <atomic>
#include <new>

#include "waywiser/base/error.hpp"
#include "waywiser/transport/courier/courier_kernel.hpp"
#include "waywiser/transport/courier/packets.hpp"

namespace waywiser {
namespace {

constexpr Seconds goodbye = 1;

std::uint64_t nanoseconds(Seconds seconds) { return static_cast<std::uint64_t>(seconds * 1e9); }

CourierShape check(CourierShape shape) {
  if (shape.lanes == 0 || shape.lanes > most_lanes || shape.pollers == 0 || shape.pollers > most_pollers)
    throw Error(ErrorKind::invalid_input, "courier: 1 to " + std::to_string(most_lanes) + " lanes with 1 to " +
                                              std::to_string(most_pollers) + " pollers are possible");
  return shape;
}

}  // namespace

ResidentKernel::ResidentKernel(Platform& platform, Place gpu, std::shared_ptr<const Memory> memory, Bytes offset,
                               const CourierOptions& options)
    : options_(options),
      gpu_(gpu),
      stream_(platform.open_stream(gpu)),
      memory_(std::move(memory)),
      shape_(check(platform.backend() == "virtual_gpu" ? options.virtual_shape : options.shape)),
      region_(memory_->region().slice(offset, shape_.lanes * sizeof(Mailbox))),
      boxes_(reinterpret_cast<Mailbox*>(region_.data)) {
  for (unsigned lane = 0; lane < shape_.lanes; ++lane) new (boxes_ + lane) Mailbox{};
}

ResidentKernel::~ResidentKernel() {
  try {
    stop();
    if (launch_ != 0) stream_->synchronize(Deadline::in(goodbye));
  } catch (const Error&) {  // it may still read the mailbox: leave that to the end of the process
    static_cast<void>(new (std::nothrow) std::shared_ptr<const Memory>(memory_));
    static_cast<void>(stream_.release());
  }
}

bool ResidentKernel::parked() const {
  return std::atomic_ref(boxes_->parked).load(std::memory_order_acquire) == launch_;
}

void ResidentKernel::ensure_running() {
  if (!parked()) return;
  if (launch_ != 0) stream_->synchronize(Deadline::in(options_.patience));
  ++launch_;
  const CourierTerms terms{reinterpret_cast<Mailbox*>(stream_->reach(region_)), launch_,
                           static_cast<unsigned>(nanoseconds(options_.look_gap)), nanoseconds(options_.idle),
                           nanoseconds(options_.residence)};
  stream_->launch(courier_kernel(terms, shape_));
}

void ResidentKernel::attend() {
  ensure_running();
  static_cast<void>(stream_->done());
}

void ResidentKernel::end() {
  stop();
  if (launch_ != 0) stream_->synchronize(Deadline::in(options_.patience));
}

void ResidentKernel::stop() {
  if (!parked()) store_packet(&boxes_->orders[0].packets[end_packet], {{launch_, 0, 0}, 0});
}

}  // namespace waywiser
