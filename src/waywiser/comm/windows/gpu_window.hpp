#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "waywiser/comm/peer_memory/gpu_connections.hpp"
#include "waywiser/comm/session/session.hpp"
#include "waywiser/device/platform.hpp"

namespace waywiser {

// GPU memory of the ranks of one machine. Bytes take this rank's paths.
class GpuWindow {
 public:
  // `theirs` by rank; this rank's own memory is not opened, nor is memory of no bytes.
  GpuWindow(Session& session, Region local, int rank, const std::vector<SharedRegion>& theirs);

  Bytes bytes_of(int rank) const { return at(rank).bytes; }
  // A rank's memory, as mapped in this process.
  Region at(int rank) const { return regions_.at(static_cast<std::size_t>(rank)); }
  // Complete when they return.
  void put(int rank, Bytes offset, ConstRegion data);
  void get(int rank, Bytes offset, Region data);
  void signal(int rank, Bytes offset, std::uint64_t value);
  // The 8 bytes of this rank's memory at `offset`.
  std::uint64_t read_flag(Bytes offset);

 private:
  void move(Region destination, ConstRegion source);
  void open_flag();
  void finish(GpuConnections::Connection& way);
  // `wait`: waits for the work in the stream.
  void finish(Stream& stream, const std::function<void()>& wait);
  Deadline deadline() const { return Deadline::in(session_.timeout()); }

  Session& session_;
  Platform& platform_;
  GpuConnections& connections_;
  Region local_;
  std::vector<std::shared_ptr<const Memory>> opened_;
  std::vector<Region> regions_;  // by rank
  Memory flag_;
  std::unique_ptr<Stream> flag_stream_;
};

}  // namespace waywiser
