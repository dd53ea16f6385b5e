#include "waywiser/collective/messages/message_kernel.hpp"

namespace waywiser::messages {

std::function<void(void*)> cuda_launcher(LaunchCache*, const MessageArguments&, const MessageWork&) { return {}; }

}  // namespace waywiser::messages
