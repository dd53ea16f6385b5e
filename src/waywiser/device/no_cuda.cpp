#include "waywiser/base/error.hpp"
#include "waywiser/device/current_gpu.hpp"
#include "waywiser/device/foreign_event.hpp"
#include "waywiser/device/platform.hpp"
#include "waywiser/device/strided_copy.hpp"

namespace waywiser {

std::optional<std::string> why_no_cuda() { return "built without CUDA"; }

std::unique_ptr<Platform> open_cuda_platform() { throw Error(ErrorKind::unavailable, *why_no_cuda()); }

int cuda_ordinal_of(int) { return -1; }

std::shared_ptr<void> make_gpu_current(int) { return nullptr; }

void await_foreign_event(const void*, Deadline) { throw Error(ErrorKind::unavailable, *why_no_cuda()); }

void copy_rows_by_cuda(Stream&, const std::byte*, const std::byte*, const StridedRows&, bool) {
  throw Error(ErrorKind::unavailable, *why_no_cuda());
}

}  // namespace waywiser
