#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "waywiser/comm/session.hpp"
#include "waywiser/device/platform.hpp"
#include "waywiser/transport/transport.hpp"

namespace waywiser {

// GPU memory of the ranks of one machine, opened here by their handles. Bytes take the plan's path for the pair and
// size; without a plan a copy engine, or staging where no GPU reaches the other.
class GpuWindow {
 public:
  // `theirs` by rank; that of this rank is not opened.
  GpuWindow(Session& session, Region local, int rank, const std::vector<MemoryHandle>& theirs);

  Bytes bytes_of(int rank) const { return at(rank).bytes; }
  // Complete when they return.
  void put(int rank, Bytes offset, ConstRegion data);
  void get(int rank, Bytes offset, Region data);
  void signal(int rank, Bytes offset, std::uint64_t value);
  // The 8 bytes of this rank's memory at `offset`.
  std::uint64_t read_flag(Bytes offset);

 private:
  struct Road {
    std::unique_ptr<Transport> transport;
    std::unique_ptr<Stream> stream;
  };
  Region at(int rank) const;
  Road& road(Place source, Place destination, Bytes bytes);
  Path choose(Place source, Place destination, Bytes bytes) const;
  Path choose_without_plan(Place source, Place destination) const;
  void move(Region destination, ConstRegion source);
  Deadline deadline() const { return Deadline::in(session_.timeout()); }

  Session& session_;
  Platform& platform_;
  Region local_;
  int rank_;
  std::vector<Memory> opened_;
  std::map<std::string, Road> roads_;
  Memory flag_;
  std::unique_ptr<Stream> flag_stream_;
};

}  // namespace waywiser
