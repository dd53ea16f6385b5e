#pragma once

#include <memory>
#include <vector>

#include "waywiser/collective/device_schedule/local_program.hpp"
#include "waywiser/device/platform.hpp"
#include "waywiser/group/group.hpp"
#include "waywiser/halo/halo_run.hpp"

namespace waywiser {

// A run whose fields are on a GPU and whose hosts take part.
class GpuRun : public HaloRun {
 protected:
  GpuRun(Group& group, std::vector<Elements> fields);

  // `function`; if it throws, other ranks would wait in vain for this one.
  template <typename Function>
  void or_abort(Function function) {
    try {
      function();
    } catch (const Error& error) {
      group_.abort(error.what());
      throw;
    }
  }
  void settle(Stream& stream) { stream.synchronize(Deadline::in(group_.timeout())); }
  // On the fields and a packed array; nullptr: nothing to do.
  std::unique_ptr<LocalProgram> program(Schedule schedule, Region packed);
  // Copies what the rank gives itself.
  std::unique_ptr<LocalProgram> own_program(HaloBoundary boundary);

  Group& group_;
  Platform& platform_;
  const Place gpu_;
  const std::unique_ptr<Stream> stream_;
  const std::vector<Elements> fields_;
};

}  // namespace waywiser
