#include "waywiser/device/platform.hpp"

#include "waywiser/base/error.hpp"

namespace waywiser {

std::string Platform::identity(int gpu) const { return std::string(backend()) + " " + std::to_string(gpu); }

std::optional<Place> Platform::find_gpu(std::string_view identity) const {
  for (int index = 0; index < gpu_count(); ++index)
    if (this->identity(index) == identity) return gpu(index);
  return {};
}

SharedRegion Platform::share(ConstRegion region) {
  throw Error(ErrorKind::unavailable,
              "the " + std::string(backend()) + " back end cannot share memory of " + text(region.place));
}

Memory Platform::open_shared(const SharedRegion& shared, Place) {
  throw Error(ErrorKind::unavailable,
              "the " + std::string(backend()) + " back end cannot open memory of " + std::string(shared.identity()));
}

std::unique_ptr<Stream> Platform::borrow_stream(Place gpu, std::uintptr_t) {
  throw Error(ErrorKind::unavailable, "the " + std::string(backend()) + " back end has no streams of " + text(gpu) +
                                          " that another library could own");
}

}  // namespace waywiser
