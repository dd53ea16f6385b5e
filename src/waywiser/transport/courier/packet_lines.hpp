#pragma once

#include "waywiser/base/units.hpp"
#include "waywiser/transport/courier/mailbox.hpp"

namespace waywiser {

// Writes and reads whole cache lines (four packets) at once, on processors that can. A device that polls a line takes
// it away from the core between two stores, so one store is much faster than four.

// Writes the first whole lines of `source` as packets of message `number` to `packets`, which starts a line, here and
// below. Returns the number of packets written: 0 on a processor that cannot.
unsigned write_packet_lines(Packet* packets, const std::byte* source, unsigned bytes, std::uint32_t number);

// The reverse: copies packets of message `number` to `to`, line by line up to the first line that is incomplete or
// would exceed `bytes`. Returns their number.
unsigned read_packet_lines(const Packet* packets, std::byte* to, unsigned bytes, std::uint32_t number);

// Hints that a device soon reads the lines: the shared cache delivers them faster than the cache of the core that has
// written them.
void demote_lines(const Packet* packets, unsigned count);

}  // namespace waywiser
