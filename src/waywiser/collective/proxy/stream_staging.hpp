#pragma once

#include <memory>
#include <vector>

#include "waywiser/device/memory.hpp"
#include "waywiser/device/stream.hpp"
#include "waywiser/transport/ucx_staged/host_pool.hpp"

namespace waywiser {

// Host memory for copies in stream order, for one GPU. Used by the program's thread alone: other owners of a share only
// read, write and drop it.
class StreamStaging {
 public:
  StreamStaging(Platform& platform, Place gpu);

  // At least `bytes`, valid until note_end(), and from then on until the stream has reached it and nobody has a share.
  std::shared_ptr<const Memory> take(Bytes bytes);
  // All copies of the memory taken so far are enqueued.
  void note_end(Stream& stream);
  // Keeps unused memory for the next call and frees nothing. Nobody may drop a share meanwhile.
  void reclaim();
  // Frees the memory that is too much to keep. To free pinned memory CUDA waits for all streams of the GPU, so the
  // progress thread must be able to run.
  void free_surplus() noexcept { surplus_.clear(); }
  // The limit is reached, unless one call alone needs more.
  bool is_full() const;

 private:
  struct Taken {
    std::shared_ptr<Memory> memory;
    std::shared_ptr<const Event> end;
  };

  HostPool pool_;
  const Place gpu_;
  std::vector<Taken> taken_;
  std::vector<Memory> surplus_;
};

// Pieces of GPU memory, and consecutive host memory in their place. A single piece of host memory is used directly.
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
