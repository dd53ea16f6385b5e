#include "waywiser/collective/fused/kernel.hpp"

namespace waywiser::fused {

std::function<void(void*)> cuda_launcher(LaunchCache*, const Shape&, DataType, const Terms&, const Work&) { return {}; }

}  // namespace waywiser::fused
