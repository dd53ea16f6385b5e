#pragma once

#include <memory>

#include "tests/explorer/devices.hpp"
#include "waywiser/transport/ucx_staged/host_pool.hpp"

namespace waywiser {

// In place of the rank's memory for others: a region is named by its address.
class PeerMemory {
 public:
  struct Part {
    std::shared_ptr<const Memory> memory;
    Region region;
  };
  explicit PeerMemory(bool shares) : shares_(shares) {}
  SharedRegion share(ConstRegion own) const {
    if (!shares_) throw Error(ErrorKind::unavailable, "this memory cannot be shared");
    SharedRegion shared;
    shared.address = reinterpret_cast<std::uintptr_t>(own.data);
    shared.bytes = own.bytes;
    const std::string identity = "gpu" + std::to_string(own.place.index);
    identity.copy(shared.gpu.data(), shared.gpu.size() - 1);
    return shared;
  }

 private:
  bool shares_;
};

// In place of the plan's paths between GPUs: streams of the explorer's.
class GpuConnections {
 public:
  struct Connection {
    std::unique_ptr<Transport> transport;
    std::unique_ptr<Stream> stream;
  };
  GpuConnections(explorer::Devices& devices, Platform& platform, bool reads, bool opens)
      : pool_(platform), reads_(reads), opens_(opens) {
    connection_ = {std::make_unique<explorer::ExploredTransport>(),
                   std::make_unique<explorer::ExploredStream>(devices, gpu(0))};
    beside_ = {std::make_unique<explorer::ExploredTransport>(),
               std::make_unique<explorer::ExploredStream>(devices, gpu(0))};
    copies_ = std::make_unique<explorer::ExploredStream>(devices, gpu(0));
  }
  Connection& connection(Place, Place, Bytes, Place) { return connection_; }
  Connection& beside(Connection&) { return beside_; }
  Connection* reading_connection(Place, Place, Bytes) { return reads_ ? &connection_ : nullptr; }
  PeerMemory::Part open(const SharedRegion& shared, Place user) const {
    if (!opens_) throw Error(ErrorKind::unavailable, "this memory cannot be opened");
    return {nullptr, {reinterpret_cast<std::byte*>(shared.address), shared.bytes, user}};
  }
  Stream& stream(Place) { return *copies_; }
  HostPool& pool() { return pool_; }

 private:
  Connection connection_, beside_;
  std::unique_ptr<Stream> copies_;
  HostPool pool_;
  bool reads_, opens_;
};

}  // namespace waywiser
