#pragma once

#include "waywiser/base/units.hpp"

namespace waywiser {

// One of the seven points at which requests are accounted: the seconds of all requests so far, and when the last one
// began and ended, by the clock of its side.
struct RemoteInterval {
  Seconds total = 0, begin = 0, end = 0;

  void add(Seconds from, Seconds to) noexcept {
    total += to - from;
    begin = from;
    end = to;
  }
};

// As the server sees them. `compute`: from the first call of a function until the server has found all calls to be
// over; `device`: the functions themselves, of which only the total is known. Those that wait at the server together,
// one after the other in a stream, are one interval.
struct ServerTimes {
  RemoteInterval input, compute, device, output;
  Seconds now = 0;  // the server's clock, when it wrote this
};

// All seven. The client's `compute`: the calls of functions, and the waiting in synchronize(). If the client waits in
// get() instead, that is in `output`.
struct RemoteTimes {
  RemoteInterval input, compute, output;
  ServerTimes server;
};

// The server's clock less this one's, which is right within `error`.
struct ClockOffset {
  Seconds offset = 0, error = 0;
};

}  // namespace waywiser
