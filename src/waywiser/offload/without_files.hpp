#pragma once

#include <functional>

#include "waywiser/base/units.hpp"

namespace waywiser {

// Runs `work` on a thread of its own, for which the kernel refuses every system call but those of memory, time and
// threads, as if there were no files: what it has not opened before, it does not find. Waits for its end and throws
// what it throws; unavailable if this kernel has no such filter; timeout at the deadline: then the thread goes on, with
// what `work` holds.
void run_without_files(std::function<void()> work, Deadline deadline);

}  // namespace waywiser
