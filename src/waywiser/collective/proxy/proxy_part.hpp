#pragma once

#include <vector>

#include "waywiser/comm/message/activity.hpp"
#include "waywiser/device/region.hpp"

namespace waywiser {

class Stream;
class StreamStaging;

// One part of an operation on a stream that the host carries out in host memory: a message or a collective. The
// program's thread enqueues the copies. The progress thread handles only the messages and never calls CUDA, since a
// CUDA call may wait for the very stream that waits for this part.
class ProxyPart : public Activity {
 public:
  // Takes host memory, before any part enqueues a copy: if there is none, the call throws and no array is read.
  virtual void take(StreamStaging& staging) = 0;
  // Enqueues the copies from the input to the host. After them the stream tells that it has reached the operation; then
  // the first turn comes.
  virtual void fetch(Stream& stream) = 0;
  // Whether the stream waits for the end of this part.
  virtual bool holds_stream() const { return true; }
  // The caller's arrays that it writes.
  virtual std::vector<Region> outputs() const { return {}; }
  // Enqueues the copies of the result, after that wait.
  virtual void put_back(Stream& stream) = 0;
};

}  // namespace waywiser
