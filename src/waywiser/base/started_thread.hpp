#pragma once

#include <functional>
#include <thread>

namespace waywiser {

// Creates the thread-local data of the C++ library and this one (for exceptions, for example) for the calling thread.
// Otherwise the first use creates it: if there is no memory then, the C library aborts the process ("cannot allocate
// memory for thread-local data: ABORT").
void make_thread_data();

// A thread that runs `body`. When this returns, the thread has its data, or the system has not started it within 10 s.
// Throws unavailable if there is no memory for it, or there are too many.
std::thread started_thread(std::function<void()> body);

}  // namespace waywiser
