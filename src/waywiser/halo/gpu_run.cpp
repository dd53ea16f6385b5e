#include "waywiser/halo/gpu_run.hpp"

#include <utility>

namespace waywiser {
namespace {

Place place_of(const std::vector<Elements>& arrays) {
  for (const Elements& each : arrays)
    if (each.region.place.is_gpu()) return each.region.place;
  throw Error(ErrorKind::invalid_input, "a field of a GPU was expected");
}

}  // namespace

GpuRun::GpuRun(Group& group, std::vector<Elements> fields)
    : group_(group),
      platform_(*group.platform()),
      gpu_(place_of(fields)),
      stream_(platform_.open_stream(gpu_)),
      fields_(std::move(fields)) {}

std::unique_ptr<LocalProgram> GpuRun::program(Schedule schedule, Region packed) {
  if (schedule.steps.empty()) return nullptr;
  std::vector<Elements> arrays = fields_;
  arrays.emplace_back(packed, DataType::uint8);
  return std::make_unique<LocalProgram>(platform_, gpu_, std::move(schedule), arrays, *stream_);
}

std::unique_ptr<LocalProgram> GpuRun::own_program(HaloBoundary boundary) {
  for (auto* parts : {&boundary.gives, &boundary.takes})
    std::erase_if(*parts, [&](const BoundaryPart& each) { return each.peer != boundary.rank; });
  return program(packing_schedule(boundary), {});
}

}  // namespace waywiser
