#include "waywiser/transport/relay/relay.hpp"

#include "waywiser/transport/peer_access.hpp"
#include "waywiser/transport/two_leg_copy.hpp"

namespace waywiser {
namespace {

Place works_on(const Path& path) { return path.source; }

TwoLegs legs_of(const Path& path) {
  TwoLegs legs;
  legs.source = path.source;
  legs.destination = path.destination;
  legs.buffer = parse_place(path.parameter("via"));
  legs.allocation = Allocation::gpu;
  legs.second = legs.buffer;
  legs.chunk = path.bytes("chunk", 4096, Bytes{1} << 30);
  legs.depth = static_cast<int>(path.integer("depth", 1, 64));
  return legs;
}

class Relay : public Transport {
 public:
  Relay(const Path& path, const TransportContext& context) : copy_(context.platform, legs_of(path), works_on(path)) {}

  void put(Region destination, ConstRegion source, Stream& stream) override { copy_.put(destination, source, stream); }
  void signal(Region flag, std::uint64_t value, Stream& stream) override { copy_.signal(flag, value, stream); }

 private:
  TwoLegCopy copy_;
};

std::optional<std::string> why_not(const Path& path, const TransportContext& context) {
  if (!path.source.is_gpu() || !path.destination.is_gpu()) return "it goes from GPU to GPU only";
  const Place via = legs_of(path).buffer;
  if (!via.is_gpu() || via == path.source || via == path.destination) return "via=" + text(via) + " is not a third GPU";
  if (via.index >= context.platform.gpu_count())
    return "there is no GPU " + std::to_string(via.index) + " to go through";
  if (auto why = why_no_access(context, path.source, via)) return why;
  if (auto why = why_no_access(context, via, path.destination)) return why;
  return why_not_shareable(path, context);
}

std::unique_ptr<Transport> open(const Path& path, const TransportContext& context) {
  const Place via = legs_of(path).buffer;
  switch_on_access(context, path.source, via);
  switch_on_access(context, via, path.destination);
  return std::make_unique<Relay>(path, context);
}

PathSteps steps(const Path& path, Bytes) {
  const TwoLegs legs = legs_of(path);
  const StepEnd buffer{legs.buffer, "a buffer"};
  return {enqueue(path.source, "two copies of each piece"),
          engine_copies(path.source, {path.source}, buffer, legs.chunk),
          engine_copies(legs.buffer, buffer, {path.destination}, legs.chunk)};
}

}  // namespace

Mechanism relay_mechanism() { return {"relay", "Through the memory of a third GPU.", why_not, works_on, open, steps}; }

}  // namespace waywiser
