#include "waywiser/transport/courier/courier_pair.hpp"

#include <new>

#include "waywiser/base/error.hpp"
#include "waywiser/device/host_memory.hpp"
#include "waywiser/transport/courier/gpu_end.hpp"
#include "waywiser/transport/courier/host_end.hpp"
#include "waywiser/transport/memory_message.hpp"

namespace waywiser {
namespace {

constexpr std::string_view what = "message from the peer process";

std::unique_ptr<Transport> open_gpu_end(const Path& path, const TransportContext& context,
                                        const CourierOptions& options) {
  auto memory = std::make_shared<const Memory>(
      context.platform.allocate(path.destination, sizeof(PairMailboxes), Allocation::shared));
  new (memory->region().data) PairMailboxes{};
  auto end = std::make_unique<GpuEnd>(path, *context.peer, context.platform, memory, options);
  const MemoryHandle handle = context.platform.export_memory(*memory);
  const Deadline deadline = Deadline::in(context.connect_patience);
  const CourierShape shape = end->shape();
  context.peer->send({{"courier", to_json(handle)}, {"lanes", shape.lanes}, {"pollers", shape.pollers}}, deadline,
                     {handle.descriptor.number()});
  require(context.peer->receive(deadline).first, "courier_open", what);
  return end;
}

// The mailboxes is mapped without the GPU's driver: nothing here needs it.
std::unique_ptr<Transport> open_host_end(const Path& path, PeerChannel& peer, Deadline deadline) {
  auto [message, descriptors] = peer.receive(deadline);
  const MemoryHandle handle = memory_handle_from_json(require(message, "courier", what), descriptors);
  const CourierShape shape{static_cast<unsigned>(require_integer(message, "lanes", what, 1, most_lanes)),
                           static_cast<unsigned>(require_integer(message, "pollers", what, 1, most_pollers))};
  if (handle.kind != HandleKind::descriptor || handle.bytes < sizeof(PairMailboxes))
    throw Error(ErrorKind::invalid_input, std::string(what) + ": 'courier' is no memory of a courier");
  auto end = std::make_unique<HostEnd>(path, peer, Memory(open_host(handle)), shape);
  peer.send({{"courier_open", true}}, deadline);
  return end;
}

}  // namespace

std::unique_ptr<Transport> open_courier_pair(const Path& path, const TransportContext& context,
                                             const CourierOptions& options) {
  PeerChannel& peer = peer_of(path, context);
  if (path.source.is_gpu()) return open_gpu_end(path, context, options);
  return open_host_end(path, peer, Deadline::in(context.connect_patience));
}

}  // namespace waywiser
