#pragma once

#include <cstdint>
#include <string_view>

namespace waywiser {

// Steps of the protocols between ranks, whatever classes carry them out. Tests make a rank stop, die, hang or be
// interrupted at one of them.
enum class ProtocolStep : std::uint8_t {
  none,
  lane_write,    // before a short message or an offer is written into the lane
  rts,           // before a long message is offered
  cts,           // the receiver knows the destination, before it sends it
  claim,         // after a chunk of a shared copy is claimed, before it is copied
  fin,           // all is copied; the other end does not know yet
  rendezvous,    // before a message is left to UCX
  put,           // before bytes go into a window or come out of it
  flag,          // before a signal is written
  announcement,  // before a message out of a GPU is announced
  piece,         // before a piece of a staged message is sent
  gpu_copy,      // one end copies between two GPUs, after the other end's reply
  round,         // before a round of a collective
  close,         // before the rank leaves
};
inline constexpr int protocol_steps = 14;
std::string_view name(ProtocolStep step) noexcept;

// The armed step, or none.
inline constinit ProtocolStep armed_step = ProtocolStep::none;
void meet_fault(ProtocolStep step) noexcept;

inline void fault_point(ProtocolStep step) noexcept {
  if (armed_step == step) [[unlikely]]
    meet_fault(step);
}

// From WAYWISER_FAULT: "STEP:WHAT" or "STEP:WHAT:TIMES". When the step is reached for the TIMES-th time, WHAT happens
// once: stop (SIGSTOP), die (SIGKILL), hang, or interrupt. Throws invalid_input.
void arm_faults();
// An interrupt has fired: the next wait ends as on Ctrl-C.
bool fault_interrupts() noexcept;

}  // namespace waywiser
