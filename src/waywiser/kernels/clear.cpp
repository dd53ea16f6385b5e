#include "waywiser/kernels/clear.hpp"

#include <algorithm>
#include <cstring>

namespace waywiser {
namespace {

constexpr Bytes at_once = Bytes{1} << 20;

}  // namespace

void clear(Platform& platform, Stream& stream, Region region) {
  const Bytes most = std::min(at_once, region.bytes);
  const Memory zeros = platform.allocate(platform.nearest_host(stream.place().index), most, Allocation::pinned);
  std::memset(zeros.region().data, 0, most);
  for (Bytes at = 0; at < region.bytes; at += most) {
    const Bytes bytes = std::min(most, region.bytes - at);
    stream.copy(region.slice(at, bytes), zeros.region().slice(0, bytes));
  }
  stream.synchronize(Deadline::in(60));
}

}  // namespace waywiser
