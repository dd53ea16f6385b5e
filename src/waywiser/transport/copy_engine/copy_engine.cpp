#include "waywiser/transport/copy_engine/copy_engine.hpp"

#include "waywiser/base/error.hpp"
#include "waywiser/transport/peer_access.hpp"

namespace waywiser {
namespace {

class CopyEngine : public Transport {
 public:
  void put(Region destination, ConstRegion source, Stream& stream) override {
    check_put(destination, source);
    if (source.bytes != 0) stream.copy(destination, source);
  }

  void signal(Region flag, std::uint64_t value, Stream& stream) override { stream.write_value(flag, value); }
};

bool reads(const Path& path) {
  if (!path.has("direction")) return false;
  const std::string_view direction = path.parameter("direction");
  const bool known = direction == "push" || direction == "pull";
  if (!known || !path.source.is_gpu() || !path.destination.is_gpu())
    throw Error(ErrorKind::invalid_input, label(path) + ": parameter 'direction' is push or pull, between two GPUs");
  return direction == "pull";
}

Place works_on(const Path& path) { return path.source.is_gpu() && !reads(path) ? path.source : path.destination; }

Place other_end(const Path& path) { return reads(path) ? path.source : path.destination; }

std::optional<std::string> why_not(const Path& path, const TransportContext& context) {
  if (!works_on(path).is_gpu()) return "no GPU takes part: host memories are copied by host_copy";
  if (auto why = why_no_access(context, works_on(path), other_end(path))) return why;
  return why_not_shareable(path, context);
}

std::unique_ptr<Transport> open(const Path& path, const TransportContext& context) {
  switch_on_access(context, works_on(path), other_end(path));
  return std::make_unique<CopyEngine>();
}

// Simulated paths also say what kind of host memory a program gives.
PathSteps steps(const Path& path, Bytes) {
  const bool pinned = !path.has("memory") || path.parameter("memory") != "pageable";
  PathSteps found{enqueue(works_on(path), "a copy")};
  add_engine_copy(found, works_on(path), {path.source}, {path.destination}, pinned);
  return found;
}

}  // namespace

Mechanism copy_engine_mechanism() {
  return {"copy_engine", "A GPU's copy engine moves the bytes.", why_not, works_on, open, steps};
}

}  // namespace waywiser
