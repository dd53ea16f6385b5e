#pragma once

#include <string>

#include "waywiser/base/units.hpp"

namespace waywiser {

// Watches whether something from outside disturbs this thread's measurements from its construction on: the process was
// stopped, the machine slept, other programs used the CPU.
class Disturbance {
 public:
  Disturbance();
  // Why the times since construction say nothing about the machine; empty if nothing is known against them.
  std::string disturbed() const;

 private:
  unsigned continued_;
  Seconds slept_, waited_, began_;
};

}  // namespace waywiser
