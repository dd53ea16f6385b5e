#if !defined(__x86_64__)
#include "waywiser/transport/courier/packet_lines.hpp"

namespace waywiser {

unsigned write_packet_lines(Packet*, const std::byte*, unsigned, std::uint32_t) { return 0; }
unsigned read_packet_lines(const Packet*, std::byte*, unsigned, std::uint32_t) { return 0; }
void demote_lines(const Packet*, unsigned) {}

}  // namespace waywiser
#endif
