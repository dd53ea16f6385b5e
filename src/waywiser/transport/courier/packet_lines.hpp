#pragma once

#include "waywiser/base/units.hpp"
#include "waywiser/transport/courier/mailbox.hpp"

namespace waywiser {

// What some processors can do with a whole cache line, four packets, at once. A device that polls it takes it away
// from the core between two stores; so one store is much faster than four.

// The first whole lines of `source` as packets of message `number`, to `packets`; these start a line, here and below.
// How many packets have been written: 0 on a processor that cannot.
unsigned write_packet_lines(Packet* packets, const std::byte* source, unsigned bytes, std::uint32_t number);

// The other way: how many packets of message `number` have been copied to `to`, line by line up to the first line that
// is not complete or would be too much for `bytes`.
unsigned read_packet_lines(const Packet* packets, std::byte* to, unsigned bytes, std::uint32_t number);

// Hints that a device soon reads the lines: it gets them faster from the cache that all cores share than from that of
// the core which has written them.
void demote_lines(const Packet* packets, unsigned count);

}  // namespace waywiser
