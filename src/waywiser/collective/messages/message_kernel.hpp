#pragma once

#include <functional>

#include "waywiser/collective/messages/joint_work.hpp"
#include "waywiser/collective/messages/message_landing.hpp"

namespace waywiser {
class LaunchCache;
}

namespace waywiser::messages {

inline constexpr unsigned threads = 512;

// Runs both directions at once, on the calling thread and another one. Throws Trap.
void run_on_host(const MessageArguments& terms, const MessageWork& work);

// The same for several messages, each on a thread of its own.
void run_on_host(const MessageArguments& terms, const JointWork& work);

// For a cudaStream_t of the rank's GPU; empty in a build without CUDA. Can be captured in graphs; otherwise it uses
// `cache`, which must stay.
std::function<void(void*)> cuda_launcher(LaunchCache* cache, const MessageArguments& terms, const MessageWork& work);
std::function<void(void*)> cuda_launcher(LaunchCache* cache, const MessageArguments& terms, const JointWork& work);

}  // namespace waywiser::messages
