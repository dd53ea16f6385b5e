#include "waywiser/transport/ucx_staged/ucx_staged.hpp"

#include "waywiser/base/error.hpp"
#include "waywiser/transport/ucx/ucx_connection.hpp"
#include "waywiser/transport/ucx/ucx_steps.hpp"
#include "waywiser/transport/ucx_staged/staged_messages.hpp"

namespace waywiser {
namespace {

constexpr unsigned turns_between_looks = 1024;

Place works_on(const Path& path) { return path.source; }

// The UCX part of the path.
Path between_hosts(const Path& path) {
  Path wire{"ucx", host(0), seen_from_other(host(0)), 2, path.parameters};
  for (const char* own : {"variant", "chunk", "depth"}) wire.parameters.erase(own);
  return wire;
}

class UcxStaged : public Transport {
 public:
  UcxStaged(const Path& path, const TransportContext& context)
      : pool_(context.platform),
        out_(ring_for(path)),
        in_(ring_for(path)),
        line_(between_hosts(path), peer_of(path, context), label(path) + " " + pair_text(path)),
        sends_(line_, staging_shape(path), out_.get()),
        receives_(line_, staging_shape(path), in_.get()),
        patience_(context.patience) {
    line_.connect(Deadline::in(context.connect_patience));
  }

  void put(Region destination, ConstRegion source, Stream& stream) override {
    if (destination.bytes != source.bytes) check_put(destination, source);
    sends_.add({const_cast<std::byte*>(source.data), source.bytes, source.place}, &stream);
    sends_.advance();
  }

  // Messages may complete out of order at the receiver; earlier sends must have arrived.
  void signal(Region, std::uint64_t value, Stream& stream) override {
    const Deadline deadline = Deadline::in(patience_);
    finish_sends(deadline);
    line_.flush(deadline);
    sends_.add({reinterpret_cast<std::byte*>(&value), sizeof value, host(0)}, &stream);
    finish_sends(deadline);
  }

  bool two_sided() const override { return true; }

  void accept(Region destination, Stream& stream) override {
    receives_.add(destination, &stream);
    receives_.advance();
  }

  void finish(Stream&, Deadline deadline) override {
    finish_sends(deadline);
    advance_until([this] { return receives_.done(); }, deadline);
  }

 private:
  std::unique_ptr<StagingRing> ring_for(const Path& path) {
    if (!path.source.is_gpu()) return nullptr;
    return std::make_unique<StagingRing>(pool_, path.source, staging_shape(path));
  }

  void finish_sends(Deadline deadline) {
    advance_until([this] { return sends_.done(); }, deadline);
  }

  template <typename Done>
  void advance_until(Done done, Deadline deadline) {
    for (unsigned turn = 1; !done(); ++turn) {
      receives_.advance();
      sends_.advance();
      if (turn % turns_between_looks == 0) line_.look(deadline);
    }
  }

  HostPool pool_;
  std::unique_ptr<StagingRing> out_, in_;  // outlive the line that may still write to them
  UcxConnection line_;
  StagedSends sends_;
  StagedReceives receives_;
  Seconds patience_;
};

std::optional<std::string> why_not(const Path& path, const TransportContext& context) {
  if (path.source.other_machine() == path.destination.other_machine())
    return "it is for two machines; within one there is host_staged";
  if (!path.source.is_gpu() && !path.destination.is_gpu()) return "no GPU takes part: ucx sends host memory itself";
  const StagingShape shape = staging_shape(path);
  if (path.source.is_gpu()) {
    const Place buffers = context.platform.nearest_host(path.source.index);
    if (auto why = context.platform.why_not_allocatable(buffers, shape.allocation)) return why;
  }
  return find_mechanism("ucx")->why_unavailable(between_hosts(path), context);
}

std::unique_ptr<Transport> open(const Path& path, const TransportContext& context) {
  return std::make_unique<UcxStaged>(path, context);
}

PathSteps steps(const Path& path, Bytes) {
  const StagingShape shape = staging_shape(path);
  const bool pinned = shape.allocation == Allocation::pinned;
  const std::string_view what = pinned ? "a pinned buffer" : "a buffer that is not pinned";
  const auto staged = [&](Place end) { return end.is_gpu() ? StepEnd{end, what, true} : StepEnd{end}; };
  const StepEnd from = staged(path.source), to = staged(path.destination);
  PathSteps found;
  if (path.source.is_gpu()) {
    found.push_back(enqueue(path.source, "a copy"));
    add_engine_copy(found, path.source, {path.source}, from, pinned, shape.chunk);
  }
  add_network(found, path, from, to, shape.chunk);
  if (path.destination.is_gpu()) {
    found.push_back({"the CPU there", "enqueues a copy in a stream of " + text(path.destination), {}, {}});
    add_engine_copy(found, path.destination, to, {path.destination}, pinned, shape.chunk);
  }
  return found;
}

Bytes least_bytes(const Path& path) { return path.has("chunk") ? path.bytes("chunk", 4096, Bytes{1} << 30) : 0; }

}  // namespace

StagingShape staging_shape(const Path& path) {
  const std::string_view variant = path.parameter("variant");
  if (variant == "pageable") return {Allocation::pageable};
  if (variant == "whole") return {Allocation::pinned};
  if (variant == "pipelined")
    return {Allocation::pinned, path.bytes("chunk", 4096, Bytes{1} << 30),
            static_cast<int>(path.integer("depth", 1, 64))};
  throw Error(ErrorKind::invalid_input, label(path) + ": parameter 'variant' must be pageable, whole or pipelined");
}

Mechanism ucx_staged_mechanism() {
  Mechanism row{"ucx_staged", "Between machines: through host memory at the GPU's end, UCX in between.",
                why_not,      works_on,
                open,         steps};
  row.two_sided = true;
  row.least_bytes = least_bytes;
  return row;
}

}  // namespace waywiser
