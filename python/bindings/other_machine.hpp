#pragma once

#include "waywiser/measure/remote_machine.hpp"
#include "waywiser/measure/two_process_meter.hpp"

// Fresh lines to the machine of rank 1; nothing where there is none.
inline waywiser::TwoProcessMeter::Connect lines_to(waywiser::RemoteMachine* link) {
  if (link == nullptr) return {};
  return [link] { return link->connect(); };
}
