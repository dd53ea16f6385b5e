#pragma once

#include <memory>
#include <vector>

#include "waywiser/device/memory.hpp"
#include "waywiser/device/stream.hpp"
#include "waywiser/transport/ucx_staged/host_pool.hpp"

namespace waywiser {

// Host memory for copies in the order of a stream, of one GPU. For the program's thread alone: whoever else has a share
// of such memory only reads, writes and drops it.
class StreamStaging {
 public:
  StreamStaging(Platform& platform, Place gpu) : pool_(platform), gpu_(gpu) {}

  // At least `bytes`, until note_end(), and from then on until the stream has got there and nobody has a share.
  std::shared_ptr<const Memory> take(Bytes bytes);
  // Copies with all that has been taken are enqueued.
  void note_end(Stream& stream);
  // Keeps for the next call what is used no more. Nobody may drop a share meanwhile.
  void reclaim();
  // As much is taken as may be, unless one call alone needs more.
  bool is_full() const;

 private:
  struct Taken {
    std::shared_ptr<Memory> memory;
    std::shared_ptr<const Event> end;
  };

  HostPool pool_;
  const Place gpu_;
  std::vector<Taken> taken_;
};

// Pieces of GPU memory and the host memory in their place, where they lie one behind the other. One piece of host
// memory stays where it is.
class StagedPieces {
 public:
  StagedPieces(StreamStaging& staging, std::vector<Region> pieces);

  Region on_host() const noexcept { return on_host_; }
  // Enqueues the copies.
  void fetch(Stream& stream) const { copy(stream, true); }
  void put_back(Stream& stream) const { copy(stream, false); }

 private:
  void copy(Stream& stream, bool to_host) const;

  const std::vector<Region> pieces_;
  std::shared_ptr<const Memory> memory_;
  Region on_host_;
};

}  // namespace waywiser
