#include "waywiser/transport/step.hpp"

namespace waywiser {

PathStep enqueue(Place gpu, std::string_view what) {
  return {"the CPU", "enqueues " + std::string(what) + " in a stream of " + text(gpu), {}, {}};
}

PathStep engine_copies(Place engine, const StepEnd& from, const StepEnd& to, Bytes piece) {
  const bool reads = to.place == engine && !to.beside;
  return {"a copy engine of " + text(engine), reads ? "reads" : "writes", from, to, piece};
}

PathStep cpu_copies(const StepEnd& from, const StepEnd& to, Bytes piece) {
  return {"the CPU", "copies", from, to, piece};
}

void add_engine_copy(PathSteps& steps, Place gpu, const StepEnd& from, const StepEnd& to, bool pinned, Bytes piece) {
  if (pinned) return steps.push_back(engine_copies(gpu, from, to, piece));
  const StepEnd driver{gpu, "a pinned buffer of the driver", true};
  if (from.place == gpu && !from.beside) {
    steps.push_back(engine_copies(gpu, from, driver, piece));
    steps.push_back(cpu_copies(driver, to, piece));
  } else {
    steps.push_back(cpu_copies(from, driver, piece));
    steps.push_back(engine_copies(gpu, driver, to, piece));
  }
}

}  // namespace waywiser
