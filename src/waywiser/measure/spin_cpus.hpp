#pragma once

#include <sched.h>

#include <vector>

#include "waywiser/measure/flag_page.hpp"
#include "waywiser/path/path.hpp"

namespace waywiser {

// Two CPUs that two processes may spin on at once.
struct SpinCpuChoices {
  std::vector<int> near_source, near_destination;  // CPUs that this process may use
  std::vector<std::vector<int>> cores;             // CPUs of one core, where there are several
};
struct SpinCpus {
  int source = -1, destination = -1;  // -1: no CPU to choose
};
// Different cores where there are two; deterministic, so that both processes choose alike.
SpinCpus choose_spin_cpus(const SpinCpuChoices& choices);
// The same for several pairs at once, with no CPU twice. Nowhere for all of them where there are too few CPUs.
std::vector<SpinCpus> choose_spin_cpus(const std::vector<SpinCpuChoices>& pairs);
// From this process's permission and the system's description of nodes and cores. GPUs may be near any CPU.
SpinCpuChoices spin_cpu_choices(const Path& path);

// Keeps the calling thread on one CPU until the end of the scope: left alone, two processes that wait for each other
// may share one for seconds. Does nothing for -1 or where it is not allowed.
class OnCpu {
 public:
  explicit OnCpu(int cpu);
  OnCpu(const OnCpu&) = delete;
  OnCpu& operator=(const OnCpu&) = delete;
  ~OnCpu();

 private:
  bool bound_ = false;
  cpu_set_t before_;
};

}  // namespace waywiser
