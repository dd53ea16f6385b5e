#pragma once

#include <functional>

#include "waywiser/collective/device_schedule/program.hpp"

namespace waywiser {
class LaunchCache;
}

namespace waywiser::program {

// Runs one start, all blocks on the calling thread. Throws Trap. `terms.form` must be that of the program.
void run_on_host(const ProgramArguments& terms);

// For a cudaStream_t of the rank's GPU; empty in a build without CUDA. Can be captured in graphs; otherwise it uses
// `cache`, which must stay. `overlaps`: as KernelLaunch has it.
std::function<void(void*)> cuda_launcher(LaunchCache* cache, const ProgramArguments& terms, bool overlaps);

}  // namespace waywiser::program
