#include "waywiser/transport/host_staged/host_staged.hpp"

#include "waywiser/base/error.hpp"
#include "waywiser/transport/peer_access.hpp"
#include "waywiser/transport/two_leg_copy.hpp"

namespace waywiser {
namespace {

Place works_on(const Path& path) { return path.source.is_gpu() ? path.source : path.destination; }

Place buffer_of(const Path& path, const Platform& platform) {
  if (!path.source.is_gpu()) return path.source;
  return path.destination.is_gpu() ? platform.nearest_host(path.source.index) : path.destination;
}

TwoLegs legs_of(const Path& path, const Platform& platform) {
  TwoLegs legs;
  legs.source = path.source;
  legs.destination = path.destination;
  legs.buffer = buffer_of(path, platform);
  legs.second = path.destination.is_gpu() ? path.destination : path.source;
  const std::string_view variant = path.parameter("variant");
  if (variant == "pipelined") {
    legs.chunk = path.bytes("chunk", 4096, Bytes{1} << 30);
    legs.depth = static_cast<int>(path.integer("depth", 1, 64));
  } else if (variant == "pageable") {
    legs.allocation = Allocation::pageable;
  } else if (variant != "whole") {
    throw Error(ErrorKind::invalid_input, label(path) + ": parameter 'variant' must be pageable, whole or pipelined");
  }
  return legs;
}

class HostStaged : public Transport {
 public:
  HostStaged(const Path& path, const TransportContext& context)
      : copy_(context.platform, legs_of(path, context.platform), works_on(path)) {}

  void put(Region destination, ConstRegion source, Stream& stream) override { copy_.put(destination, source, stream); }
  void signal(Region flag, std::uint64_t value, Stream& stream) override { copy_.signal(flag, value, stream); }

 private:
  TwoLegCopy copy_;
};

std::optional<std::string> why_not(const Path& path, const TransportContext& context) {
  if (!works_on(path).is_gpu()) return "no GPU takes part: host memories are copied by host_copy";
  const TwoLegs legs = legs_of(path, context.platform);
  if (auto why = context.platform.why_not_allocatable(legs.buffer, legs.allocation)) return why;
  return why_not_shareable(path, context);
}

std::unique_ptr<Transport> open(const Path& path, const TransportContext& context) {
  return std::make_unique<HostStaged>(path, context);
}

// As legs_of; the buffer is beside the source's GPU, whichever host memory that is.
PathSteps steps(const Path& path, Bytes) {
  const bool pipelined = path.parameter("variant") == "pipelined", pinned = path.parameter("variant") != "pageable";
  const Bytes piece = pipelined ? path.bytes("chunk", 4096, Bytes{1} << 30) : 0;
  const std::string_view what = pinned ? "a pinned buffer" : "a buffer that is not pinned";
  const bool from_gpu = path.source.is_gpu(), to_gpu = path.destination.is_gpu();
  const StepEnd buffer =
      from_gpu && to_gpu ? StepEnd{path.source, what, true} : StepEnd{from_gpu ? path.destination : path.source, what};
  PathSteps found{enqueue(works_on(path), "two copies" + std::string(pipelined ? " of each piece" : ""))};
  if (from_gpu)
    add_engine_copy(found, path.source, {path.source}, buffer, pinned, piece);
  else
    found.push_back(cpu_copies({path.source}, buffer, piece));
  if (to_gpu)
    add_engine_copy(found, path.destination, buffer, {path.destination}, pinned, piece);
  else
    found.push_back(cpu_copies(buffer, {path.destination}, piece));
  return found;
}

}  // namespace

Mechanism host_staged_mechanism() {
  Mechanism row{"host_staged", "Through host memory: pageable, pinned as a whole, or pinned in a pipeline of chunks.",
                why_not,       works_on,
                open,          steps};
  row.through_host = true;
  return row;
}

}  // namespace waywiser
