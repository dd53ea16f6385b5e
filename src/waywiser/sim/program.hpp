#pragma once

#include <optional>
#include <string>
#include <vector>

#include "waywiser/sim/world.hpp"

namespace waywiser::sim {

// One leg of a chunk: it waits for its unit, which serves one chunk at a time in order, holds it for `hold` and then
// while the bytes flow, and ends `latency` later.
struct Leg {
  std::string unit;  // "0:gpu0.h2d"; empty: needs none
  Seconds hold = 0;
  std::vector<Use> uses;
  BytesPerSecond cap = no_cap;
  Seconds latency = 0;
};

// A transfer as a sum of legs. The caller's CPU spends `issue`, then `issue_chunk` on each chunk, without
// waiting for legs; chunk c may enter its first leg when chunk c - depth has left its last one. Time of one transfer of
// n chunks through legs that take t1, t2, ...:
//     issue + n issue_chunk + ... >= T >= issue + issue_chunk + sum(t) + (n - 1) max(t) + finish
// and exactly what the engine finds where legs meet on hops. Parts run side by side.
struct Program {
  std::string cpu;  // "0:cpu0"
  Seconds issue = 0, issue_chunk = 0;
  Seconds busy = 0;          // of that CPU's time too, but within the legs
  Bytes chunk = 0;           // 0: the transfer is one chunk
  int depth = 0;             // 0: no limit
  bool in_turn = false;      // a transfer's first leg waits for the last leg of the transfer before it
  std::optional<Leg> first;  // once for the transfer, before its first chunk; carries no bytes
  std::vector<Leg> legs;
  Seconds finish = 0;  // until the caller knows, seen once by a transfer that it waits for
  Seconds turn = 0;    // to hand a GPU over to the other process, which needs it too
  Bytes share = 0;     // of a part: its bytes
  std::vector<Program> parts;
};

}  // namespace waywiser::sim
