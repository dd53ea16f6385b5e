#include "waywiser/collective/device_schedule/local_program.hpp"

#include <utility>

namespace waywiser {

LocalProgram::LocalProgram(Platform& platform, Place gpu, Schedule schedule, std::span<const Elements> arrays,
                           Stream& stream)
    : execution_(platform, gpu, std::make_shared<const Schedule>(std::move(schedule)), arrays, ReduceOp::sum,
                 ProgramAlgorithms(nullptr)),
      landing_(platform.allocate(gpu, execution_.landing_bytes(), Allocation::gpu)) {
  const Region own = landing_.region();
  execution_.set_landing(own, stream);
  const program::LandingPlan plan = execution_.plan();
  execution_.connect(std::span(&own, 1), std::span(&plan, 1), stream);
}

}  // namespace waywiser
