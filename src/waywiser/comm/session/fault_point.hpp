#pragma once

#include <cstdint>
#include <string_view>

namespace waywiser {

// Steps of the protocols between ranks, as the field calls them, whatever classes carry them out. For tests, which make
// a rank stop, die, hang or be interrupted at one of them.
enum class ProtocolStep : std::uint8_t {
  none,
  lane_write,    // a short message, or an offer, is about to be written into the lane
  rts,           // a long message is about to be offered
  cts,           // the receiver knows where it goes, and is about to say so
  claim,         // a chunk of a shared copy has been claimed, and is about to be copied
  fin,           // all is copied, and the other end has not been told
  rendezvous,    // a message is about to be left to UCX
  put,           // bytes are about to go into a window, or to come out of it
  flag,          // a signal is about to be written
  announcement,  // a message out of a GPU is about to be announced
  piece,         // a piece of a staged message is about to go
  gpu_copy,      // the one end copies between two GPUs, where the other one has said
  round,         // a round of a collective is about to begin
  close,         // the rank is about to leave
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

// From WAYWISER_FAULT: "STEP:WHAT" or "STEP:WHAT:TIMES", where WHAT happens when the step is come to for the TIMES-th
// time, once: stop (SIGSTOP), die (SIGKILL), hang, or interrupt. Throws invalid_input.
void arm_faults();
// An interrupt has been met: the next wait ends as Ctrl-C would end it.
bool fault_interrupts() noexcept;

}  // namespace waywiser
