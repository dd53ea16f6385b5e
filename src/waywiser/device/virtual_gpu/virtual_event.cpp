#include "waywiser/base/error.hpp"
#include "waywiser/device/virtual_gpu/virtual_stream.hpp"

namespace waywiser {
namespace {

bool has_happened(const std::shared_ptr<EventPoint>& point) {
  return !point || point->state.load(std::memory_order_acquire) != EventPoint::pending;
}

}  // namespace

bool VirtualEvent::done() const {
  if (bus_->trapped(place_.index)) throw_trapped(place_);
  if (bus_->scheduler().seeded() && !has_happened(point_)) bus_->scheduler().progress();
  return has_happened(point_);
}

void VirtualEvent::synchronize(Deadline deadline) const {
  const Seconds limit = deadline.left();
  if (!bus_->scheduler().run_until([&] { return has_happened(point_); }, deadline))
    throw Error(ErrorKind::timeout, "an event of " + text(place_) + " did not happen within " + format_seconds(limit));
  if (bus_->trapped(place_.index)) throw_trapped(place_);
}

Seconds VirtualEvent::since(const Event& earlier) const {
  const auto* other = dynamic_cast<const VirtualEvent*>(&earlier);
  const bool both = other != nullptr && point_ && other->point_ && has_happened(point_) && has_happened(other->point_);
  if (!both)
    throw Error(ErrorKind::invalid_input, "time between events of " + text(place_) + " that are not both done");
  return point_->at - other->point_->at;
}

}  // namespace waywiser
