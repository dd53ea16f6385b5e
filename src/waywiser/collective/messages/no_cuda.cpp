#include "waywiser/collective/messages/message_kernel.hpp"

namespace waywiser::messages {

std::function<void(void*)> cuda_launcher(LaunchCache*, const MessageArguments&, const MessageWork&) { return {}; }

std::function<void(void*)> cuda_launcher(LaunchCache*, const MessageArguments&, const JointWork&) { return {}; }

}  // namespace waywiser::messages
