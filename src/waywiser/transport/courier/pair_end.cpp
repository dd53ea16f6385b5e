#include "waywiser/transport/courier/pair_end.hpp"

#include <sched.h>

namespace waywiser {

void PairEnd::finish(Stream&, Deadline deadline) {
  wait([this] { return idle(); }, deadline);
}

void PairEnd::look(Deadline deadline) {
  look_after();
  if (peer_.peer_ended()) {
    progress();  // advances the last operations
    if (!idle()) throw Error(ErrorKind::io, name_ + ": the peer process ended");
  }
  if (deadline.passed()) throw Error(ErrorKind::timeout, name_ + ": " + late_text());
  ::sched_yield();
}

// The address that a two-sided put names means nothing.
void PairEnd::check(ConstRegion destination, ConstRegion source, const Stream& stream) const {
  if (destination.bytes != source.bytes)
    throw Error(ErrorKind::invalid_input, name_ + ": the sizes of source and destination differ");
  check(stream);
}

void PairEnd::check(const Stream& stream) const {
  if (stream.place().is_gpu())
    throw Error(ErrorKind::invalid_input, name_ + ": its stream must be on the host, not on " + text(stream.place()));
}

void PairEnd::fail_sizes(Bytes accepted, Bytes put) const {
  throw Error(ErrorKind::corrupt,
              name_ + ": accepted " + std::to_string(accepted) + " bytes, but " + std::to_string(put) + " were put");
}

}  // namespace waywiser
