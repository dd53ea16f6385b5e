#pragma once

#include <functional>
#include <thread>

namespace waywiser {

// Makes what the C++ library and this one keep for each thread (of exceptions, for example), for the calling thread. It
// is made when it is first used otherwise: where there is no memory then, the C library ends the process ("cannot
// allocate memory for thread-local data: ABORT").
void make_thread_data();

// A thread that runs `body`. It has its data when this returns, or has not been started by the system within 10 s.
std::thread started_thread(std::function<void()> body);

}  // namespace waywiser
