#include "waywiser/device/region.hpp"

#include <functional>

#include "waywiser/base/error.hpp"

namespace waywiser {
namespace {

void check_slice(Bytes offset, Bytes length, Bytes bytes) {
  if (offset > bytes || length > bytes - offset)
    throw Error(ErrorKind::invalid_input, "slice of " + std::to_string(length) + " bytes at " + std::to_string(offset) +
                                              " is outside a region of " + std::to_string(bytes) + " bytes");
}

}  // namespace

ConstRegion ConstRegion::slice(Bytes offset, Bytes length) const {
  check_slice(offset, length, bytes);
  return {data + offset, length, place};
}

Region Region::slice(Bytes offset, Bytes length) const {
  check_slice(offset, length, bytes);
  return {data + offset, length, place};
}

bool overlap(ConstRegion a, ConstRegion b) noexcept {
  const std::less<> before;
  return a.bytes != 0 && b.bytes != 0 && a.place == b.place && before(a.data, b.data + b.bytes) &&
         before(b.data, a.data + a.bytes);
}

void check_put(ConstRegion destination, ConstRegion source) {
  if (destination.bytes != source.bytes)
    throw Error(ErrorKind::invalid_input, "put of " + std::to_string(source.bytes) + " bytes into a region of " +
                                              std::to_string(destination.bytes) + " bytes");
  if (overlap(destination, source))
    throw Error(ErrorKind::invalid_input, "put between overlapping regions in " + text(source.place));
}

}  // namespace waywiser
