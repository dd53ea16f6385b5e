#include "waywiser/device/stream.hpp"

#include "waywiser/base/error.hpp"

namespace waywiser {

std::unique_ptr<StreamGraph> Stream::capture(const std::function<void()>&) {
  throw Error(ErrorKind::unavailable, "work on " + text(place()) + " cannot be captured in a CUDA graph");
}

}  // namespace waywiser
