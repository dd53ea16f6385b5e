#pragma once

#include "waywiser/base/units.hpp"

namespace waywiser {

inline constexpr int looks_while_computing = 16;

// Keeps the processor busy for `seconds`; meanwhile it calls `look`, which advances the group's messages, until `look`
// says that all are done.
template <typename Look>
void compute_beside(Seconds seconds, Look look) {
  const Seconds start = now_seconds();
  bool done = false;
  for (int part = 1; part <= looks_while_computing; ++part) {
    const Seconds until = start + seconds * part / looks_while_computing;
    while (now_seconds() < until) continue;
    if (!done && seconds > 0) done = look();
  }
}

}  // namespace waywiser
