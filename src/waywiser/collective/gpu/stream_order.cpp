#include "waywiser/collective/gpu/stream_order.hpp"

#include <utility>

#include "waywiser/base/error.hpp"

namespace waywiser {

void StreamOrder::begin(Stream& stream) {
  if (stream.place() != gpu_)
    throw Error(ErrorKind::invalid_input,
                "a stream of " + text(stream.place()) + ": the collectives of this group use " + text(gpu_));
  if (!last_) return;
  const bool same = stream.native() != nullptr && stream.native() == last_native_;
  if (!same && !stream.capturing()) stream.wait(*last_);
}

void StreamOrder::end(Stream& stream) {
  if (!stream.capturing() && &stream != own_.get()) note(stream);
}

void StreamOrder::note(Stream& stream) {
  if (!last_) {
    auto event = platform_.create_event(gpu_);
    const std::lock_guard lock(mutex_);
    last_ = std::move(event);
  }
  stream.record(*last_);
  last_native_ = stream.native();
}

bool StreamOrder::is_busy() const {
  const std::lock_guard lock(mutex_);
  return last_ != nullptr && !last_->done();
}

bool StreamOrder::is_gone() const {
  const std::lock_guard lock(mutex_);
  return last_ == nullptr || !reason_of([&] { static_cast<void>(last_->done()); }).empty();
}

}  // namespace waywiser
