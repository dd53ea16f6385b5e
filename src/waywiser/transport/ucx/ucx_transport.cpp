#include "waywiser/transport/ucx/ucx_transport.hpp"

#include "waywiser/device/current_gpu.hpp"
#include "waywiser/transport/defaults.hpp"
#include "waywiser/transport/ucx/ucx_availability.hpp"
#include "waywiser/transport/ucx/ucx_connection.hpp"
#include "waywiser/transport/ucx/ucx_steps.hpp"

namespace waywiser {
namespace {

constexpr Bytes smallest_split = defaults::ucx_split;

class UcxTransport : public Transport {
 public:
  UcxTransport(const Path& path, const TransportContext& context)
      : line_(path, peer_of(path, context), label(path) + " " + pair_text(path)), patience_(context.patience) {
    line_.connect(Deadline::in(context.connect_patience));
  }

  void put(Region destination, ConstRegion source, Stream& stream) override {
    if (destination.bytes != source.bytes) check_put(destination, source);
    prepare(source.place, stream);
    const auto gpu = current_gpu();
    line_.send(source);
  }

  void signal(Region, std::uint64_t value, Stream& stream) override {
    // Messages may complete out of order at the receiver; earlier sends must have arrived.
    line_.finish_sends(Deadline::in(patience_));
    line_.flush(Deadline::in(patience_));
    prepare(stream.place(), stream);
    line_.send({reinterpret_cast<const std::byte*>(&value), sizeof value, host(0)});
    line_.finish_sends(Deadline::in(patience_));
  }

  bool two_sided() const override { return true; }

  void accept(Region destination, Stream& stream) override {
    prepare(destination.place, stream);
    const auto gpu = current_gpu();
    line_.receive(destination);
  }

  void finish(Stream&, Deadline deadline) override {
    const auto gpu = current_gpu();
    line_.finish(deadline);
  }

 private:
  void prepare(Place place, Stream& stream) {
    if (stream.place().is_gpu()) stream.synchronize(Deadline::in(patience_));
    if (place.is_gpu()) ordinal_ = cuda_ordinal(place.index);
  }

  int cuda_ordinal(int index) {
    if (index != gpu_index_) known_ordinal_ = cuda_ordinal_of(index);
    gpu_index_ = index;
    return known_ordinal_;
  }

  std::shared_ptr<void> current_gpu() const { return ordinal_ < 0 ? nullptr : make_gpu_current(ordinal_); }

  UcxConnection line_;
  Seconds patience_;
  int ordinal_ = -1, gpu_index_ = -1, known_ordinal_ = -1;
};

Place works_on(const Path& path) {
  if (!path.source.is_gpu()) return path.source;
  return path.destination.is_gpu() ? host(0) : path.destination;
}

std::unique_ptr<Transport> open(const Path& path, const TransportContext& context) {
  return std::make_unique<UcxTransport>(path, context);
}

// A smaller message goes over one rail.
Bytes least_bytes(const Path& path) { return path.has("share") ? smallest_split : 0; }

}  // namespace

Mechanism ucx_mechanism() {
  Mechanism row{"ucx", "UCX with the named transports.", why_no_ucx, works_on, open, ucx_steps};
  row.two_sided = true;
  row.least_bytes = least_bytes;
  return row;
}

}  // namespace waywiser
