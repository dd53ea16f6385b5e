#include "waywiser/measure/spin_cpus.hpp"

#include <algorithm>

#include "waywiser/topology/system_files.hpp"

namespace waywiser {
namespace {

std::vector<int> allowed_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cpus;
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  return cpus;
}

std::vector<int> cpus_near(const SystemFiles& files, Place place, const std::vector<int>& allowed) {
  if (place.is_gpu()) return allowed;
  const std::string folder = "/sys/devices/system/node/node" + std::to_string(place.index);
  const std::vector<int> node = parse_cpulist(files.line(folder + "/cpulist").value_or(""));
  std::vector<int> near;
  std::ranges::copy_if(allowed, std::back_inserter(near), [&](int cpu) { return std::ranges::count(node, cpu) != 0; });
  return near.empty() ? allowed : near;
}

bool same_core(const SpinCpuChoices& choices, int a, int b) {
  return a == b || std::ranges::any_of(choices.cores, [&](const std::vector<int>& core) {
           return std::ranges::count(core, a) != 0 && std::ranges::count(core, b) != 0;
         });
}

// The first of `near` that is none of `taken`, nor on a core with one of them unless cores are shared.
int free_cpu(const SpinCpuChoices& choices, const std::vector<int>& near, const std::vector<int>& taken, bool sharing) {
  const auto free = [&](int cpu) {
    return std::ranges::none_of(taken,
                                [&](int other) { return sharing ? cpu == other : same_core(choices, cpu, other); });
  };
  const auto found = std::ranges::find_if(near, free);
  return found == near.end() ? -1 : *found;
}

// Empty where there are too few CPUs.
std::vector<SpinCpus> spin_cpus_for(const std::vector<SpinCpuChoices>& pairs, bool sharing) {
  std::vector<SpinCpus> spin_cpus;
  std::vector<int> taken;
  for (const SpinCpuChoices& choices : pairs)
    for (const bool first : {true, false}) {
      const int cpu = free_cpu(choices, first ? choices.near_source : choices.near_destination, taken, sharing);
      if (cpu < 0) return {};
      taken.push_back(cpu);
      if (first) spin_cpus.emplace_back();
      (first ? spin_cpus.back().source : spin_cpus.back().destination) = cpu;
    }
  return spin_cpus;
}

}  // namespace

SpinCpus choose_spin_cpus(const SpinCpuChoices& choices) {
  for (const int source : choices.near_source)
    for (const int destination : choices.near_destination)
      if (!same_core(choices, source, destination)) return {source, destination};
  for (const int source : choices.near_source)
    for (const int destination : choices.near_destination)
      if (source != destination) return {source, destination};
  return {};
}

std::vector<SpinCpus> choose_spin_cpus(const std::vector<SpinCpuChoices>& pairs) {
  for (const bool sharing : {false, true})
    if (std::vector<SpinCpus> spin_cpus = spin_cpus_for(pairs, sharing); !spin_cpus.empty()) return spin_cpus;
  return std::vector<SpinCpus>(pairs.size());
}

SpinCpuChoices spin_cpu_choices(const Path& path) {
  const SystemFiles files("");
  const std::vector<int> allowed = allowed_cpus();
  SpinCpuChoices choices{cpus_near(files, path.source, allowed), cpus_near(files, path.destination, allowed), {}};
  for (const int cpu : allowed) {
    const auto folder = "/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/thread_siblings_list";
    const std::vector<int> core = parse_cpulist(files.line(folder).value_or(""));
    if (core.size() > 1) choices.cores.push_back(core);
  }
  return choices;
}

OnCpu::OnCpu(int cpu) {
  CPU_ZERO(&before_);
  if (cpu < 0 || cpu >= CPU_SETSIZE || ::sched_getaffinity(0, sizeof before_, &before_) != 0) return;
  cpu_set_t only;
  CPU_ZERO(&only);
  CPU_SET(cpu, &only);
  bound_ = ::sched_setaffinity(0, sizeof only, &only) == 0;
}

OnCpu::~OnCpu() {
  if (bound_) ::sched_setaffinity(0, sizeof before_, &before_);
}

}  // namespace waywiser
