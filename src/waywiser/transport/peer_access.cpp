#include "waywiser/transport/peer_access.hpp"

#include "waywiser/base/error.hpp"

namespace waywiser {

std::optional<std::string> why_no_access(const TransportContext& context, Place worker, Place other) {
  if (!other.is_gpu() || other == worker) return {};
  return context.platform.why_no_peer_access(worker.index, other.index);
}

void switch_on_access(const TransportContext& context, Place worker, Place other) {
  if (other.is_gpu() && other != worker) context.platform.set_peer_access(worker.index, other.index, true);
}

std::optional<std::string> why_not_shareable(const Path& path, const TransportContext& context) {
  if (path.processes == 1) return {};
  if (!path.destination.is_gpu()) return context.platform.why_not_allocatable(path.destination, Allocation::shared);
  const std::string_view handle = path.has("handle") ? path.parameter("handle") : "cuda_ipc";
  if (handle != "cuda_ipc" && handle != "descriptor")
    throw Error(ErrorKind::invalid_input, label(path) + ": parameter 'handle' must be cuda_ipc or descriptor");
  return context.platform.why_not_allocatable(path.destination,
                                              handle == "cuda_ipc" ? Allocation::gpu : Allocation::gpu_mapped);
}

}  // namespace waywiser
