#include "waywiser/base/error.hpp"
#include "waywiser/device/platform.hpp"

namespace waywiser {

std::optional<std::string> why_no_cuda() { return "built without CUDA"; }

std::unique_ptr<Platform> open_cuda_platform() { throw Error(ErrorKind::unavailable, *why_no_cuda()); }

}  // namespace waywiser
