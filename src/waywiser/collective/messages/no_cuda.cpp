#include "waywiser/collective/messages/message_kernel.hpp"

namespace waywiser::messages {

std::function<void(void*)> cuda_launcher(LaunchCache*, const Terms&, const Work&) { return {}; }

}  // namespace waywiser::messages
