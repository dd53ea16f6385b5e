#include "waywiser/group/scans.hpp"

#include <cstring>
#include <limits>
#include <vector>

#include "waywiser/base/error.hpp"
#include "waywiser/comm/reduce.hpp"
#include "waywiser/group/call_checks.hpp"
#include "waywiser/group/group_state.hpp"
#include "waywiser/group/inside.hpp"

namespace waywiser {
namespace {

// The location of each element whose value is the one that was found. Both are reduced with themselves before they are
// compared: then a NaN has the bits that a reduction gives it.
std::vector<std::int64_t> own_locations(ReduceOp op, std::vector<std::byte> values, Elements found,
                                        std::span<const std::int64_t> locations) {
  const std::size_t size = bytes_of(found.type);
  reduce(found.type, op, values.data(), values.data(), locations.size());
  reduce(found.type, op, found.region.data, found.region.data, locations.size());
  std::vector<std::int64_t> own(locations.begin(), locations.end());
  for (std::size_t i = 0; i < own.size(); ++i)
    if (std::memcmp(values.data() + i * size, found.region.data + i * size, size) != 0)
      own[i] = std::numeric_limits<std::int64_t>::max();
  return own;
}

void locate(Group& group, ReduceOp op, ConstElements values, std::span<const std::int64_t> locations, Elements found,
            std::span<std::int64_t> found_at) {
  check_count(CallKind::all_reduce, "the array of locations", locations.size(), values.count());
  check_count(CallKind::all_reduce, "the array of locations found", found_at.size(), values.count());
  if (values.region.place.is_gpu() || found.region.place.is_gpu())
    throw Error(ErrorKind::unavailable, "minloc and maxloc are for arrays in host memory");
  const GroupHold hold(group);
  const std::vector<std::byte> given(values.region.data, values.region.data + values.region.bytes);
  group.all_reduce(values, found, op);
  const std::vector<std::int64_t> own = own_locations(op, given, found, locations);
  group.all_reduce(std::span(own), found_at, ReduceOp::min);
}

}  // namespace

Future scan(Group& group, ConstElements input, Elements output, ReduceOp op, Mode mode) {
  return run(group, {Collective::scan, input, output, op}, mode);
}

Future exscan(Group& group, ConstElements input, Elements output, ReduceOp op, Mode mode) {
  return run(group, {Collective::exscan, input, output, op}, mode);
}

void minloc(Group& group, ConstElements values, std::span<const std::int64_t> locations, Elements found,
            std::span<std::int64_t> found_at) {
  locate(group, ReduceOp::min, values, locations, found, found_at);
}

void maxloc(Group& group, ConstElements values, std::span<const std::int64_t> locations, Elements found,
            std::span<std::int64_t> found_at) {
  locate(group, ReduceOp::max, values, locations, found, found_at);
}

}  // namespace waywiser
