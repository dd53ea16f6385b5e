#pragma once

namespace waywiser {

// One wave of blocks that fill the multiprocessors of the current GPU, each for so many nanoseconds. Only enqueues.
void run_on_full_gpu(unsigned long long nanoseconds);

}  // namespace waywiser
