#include "waywiser/kernels/launch_trap.hpp"

#include "waywiser/device/trap.hpp"
#include "waywiser/kernels/cuda_launchers.hpp"

namespace waywiser {

void launch_trap(Stream& stream) {
  stream.launch({1, 1, [](const ThreadContext&) { throw Trap(); }, cuda_trap_launcher()});
}

}  // namespace waywiser
