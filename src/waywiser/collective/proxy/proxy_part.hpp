#pragma once

#include "waywiser/comm/session/activity.hpp"

namespace waywiser {

class Stream;
class StreamStaging;

// One part of an operation on a stream that the host carries out on host memory: a message, or a collective. The
// program's thread enqueues the copies; only the messages are the progress thread's, which never calls CUDA: the stream
// that waits may be what a call of CUDA waits for.
class ProxyPart : public Activity {
 public:
  // Takes host memory, before any part enqueues a copy: a call that finds none raises, and nothing reads its arrays.
  virtual void take(StreamStaging& staging) = 0;
  // Enqueues the copies of the input into it. Behind them the stream tells that it has got there; the first turn comes
  // then.
  virtual void fetch(Stream& stream) = 0;
  // Whether the stream waits for the end of this part.
  virtual bool holds_stream() const { return true; }
  // Enqueues the copies of the result, behind that wait.
  virtual void put_back(Stream& stream) = 0;
};

}  // namespace waywiser
