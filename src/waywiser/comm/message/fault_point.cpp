#include "waywiser/comm/message/fault_point.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <csignal>
#include <string>
#include <vector>

#include "waywiser/base/environment.hpp"
#include "waywiser/base/error.hpp"

namespace waywiser {
namespace {

constexpr std::array<std::string_view, protocol_steps> step_names{
    "none", "lane_write", "rts",          "cts",   "claim",    "fin",   "rendezvous",
    "put",  "flag",       "announcement", "piece", "gpu_copy", "round", "close"};
constexpr std::array<std::string_view, 4> fault_names{"stop", "die", "hang", "interrupt"};
enum class Fault : std::uint8_t { stop, die, hang, interrupt };

struct Armed {
  Fault fault = Fault::stop;
  unsigned times = 1;
};
constinit Armed armed;
constinit std::atomic<bool> interrupted{false};

std::vector<std::string_view> split(std::string_view text) {
  std::vector<std::string_view> parts;
  for (std::size_t colon = 0; colon != std::string_view::npos; text.remove_prefix(std::min(colon + 1, text.size()))) {
    colon = text.find(':');
    parts.push_back(text.substr(0, colon));
    if (colon == std::string_view::npos) break;
  }
  return parts;
}

template <std::size_t Count>
std::size_t index_of(const std::array<std::string_view, Count>& names, std::string_view name) {
  return static_cast<std::size_t>(std::ranges::find(names, name) - names.begin());
}

}  // namespace

std::string_view name(ProtocolStep step) noexcept { return step_names[static_cast<std::size_t>(step)]; }

void arm_faults() {
  const auto text = environment("WAYWISER_FAULT");
  if (!text) return;
  const auto parts = split(*text);
  const std::size_t step = index_of(step_names, parts[0]);
  const std::size_t fault = parts.size() > 1 ? index_of(fault_names, parts[1]) : fault_names.size();
  unsigned times = 1;
  if (parts.size() > 2) std::from_chars(parts[2].data(), parts[2].data() + parts[2].size(), times);
  if (step == step_names.size() || fault == fault_names.size() || times == 0 || parts.size() > 3)
    throw Error(ErrorKind::invalid_input, "WAYWISER_FAULT=" + quoted(*text, 60) + " is not STEP:WHAT:TIMES");
  armed = {static_cast<Fault>(fault), times};
  armed_step = static_cast<ProtocolStep>(step);
}

void meet_fault(ProtocolStep) noexcept {
  if (--armed.times != 0) return;
  armed_step = ProtocolStep::none;
  switch (armed.fault) {
    case Fault::stop: ::raise(SIGSTOP); return;
    case Fault::die: ::raise(SIGKILL); return;
    case Fault::hang:
      for (;;) ::pause();
    case Fault::interrupt: interrupted = true;
  }
}

bool fault_interrupts() noexcept { return interrupted.exchange(false, std::memory_order_relaxed); }

}  // namespace waywiser
