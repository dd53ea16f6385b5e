#pragma once

#include "waywiser/measure/profile.hpp"

namespace waywiser {

// If a run has more repetitions than this, one repetition is too short for a clock.
inline constexpr int most_timed_singly = 512;

// How many transfers are in flight, and over how many slots of memory they rotate, each `stride` bytes long.
struct Rotation {
  int transfers = 1;
  int slots = 1;
};

// Latency: one slot, so that messages are in the caches, as they are when a program has just written them. Otherwise
// 64 slots up to 16K: they stay in a cache that is larger than a core's own; beyond, 64 MiB, so that they come from
// memory. Nothing in between: whether a working set of about the size of the last cache is in it depends on who ran
// before.
Rotation rotation(Operation operation, Bytes stride);

// How many transfers of `bytes` a sample has at least where several streams run at once: enough for the window to
// matter; very large ones keep their path busy one at a time.
int at_least_in_flight(const Rotation& window, Bytes bytes);

// Untimed transfers before a sample of `repetitions`: they wake threads and bring the caches into the state that the
// path itself makes, whoever ran before.
int warm_up(int repetitions, Bytes bytes);

}  // namespace waywiser
