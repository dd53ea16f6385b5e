#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "waywiser/device/platform.hpp"
#include "waywiser/measure/profile.hpp"
#include "waywiser/transport/transport.hpp"

namespace waywiser {

// One direction of one pair, ready to move bytes: an open transport, its stream, and slots of memory at both ends. The
// source holds the test pattern of `seed` from the start of the first slot on.
struct PathConnection {
  std::unique_ptr<Transport> transport;
  std::unique_ptr<Stream> stream;
  Path path;
  std::vector<ConstRegion> sources;  // slots
  std::vector<Region> destinations;
  std::uint64_t seed = 0;
  std::size_t* next = nullptr;  // the next slot, shared by all connections with these buffers
};

// The distance of slots of `bytes`.
Bytes slot_stride(Bytes bytes);

// Opens connections and keeps them: opening costs far more than a transfer.
class ConnectionStore {
 public:
  explicit ConnectionStore(Platform& platform) : platform_(platform) {}

  // Makes the buffers of connection `number` of those that run at once on the same pair; this may close all
  // connections. Prepare all connections of an operation, check that all are ready, then request them.
  void prepare(const Path& path, int number, Bytes bytes, int slots);
  bool ready(const Path& path, int number, Bytes bytes, int slots);
  // Valid until the next prepare().
  PathConnection& connection(const Path& path, int number, Bytes bytes, int slots);
  // A fresh transport and stream that nothing else uses; buffers are shared with connection 0.
  PathConnection open_fresh(const Path& path, Bytes bytes);
  void close_connections() { connections_.clear(); }
  void fill_destination(const Path& path, int number, Region slot, std::uint64_t seed);
  Bytes mismatches(const Path& path, int number, ConstRegion slot, std::uint64_t seed);

  Bytes half_of_free(Place place);

 private:
  struct Buffers {
    Memory source, destination;
    std::unique_ptr<Stream> source_stream, destination_stream;  // for patterns
    Bytes bytes = 0;
    std::uint64_t seed = 0;
    std::size_t next = 0;
  };

  Buffers& buffers(const Path& path, int number);
  void grow(Buffers& buffers, const Path& path, Bytes bytes);
  Memory allocate(const Path& path, Place place, Bytes bytes);
  bool fits(const Path& path, Bytes bytes);
  void release_all();
  void open(PathConnection& connection, const Path& path) const;
  static void cut(PathConnection& connection, Buffers& buffers, Bytes bytes, int slots);

  Platform& platform_;
  std::map<Place, Bytes> free_at_start_;
  std::map<std::string, Buffers> buffers_;             // of a pair and number; before connections_: these go first
  std::map<std::string, PathConnection> connections_;  // of a path and number
  std::uint64_t next_seed_ = 1;
};

}  // namespace waywiser
