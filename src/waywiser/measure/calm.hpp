#pragma once

#include <string>

#include "waywiser/base/units.hpp"

namespace waywiser {

// Watches, from its beginning on, whether something from outside disturbs what this thread measures: the process was
// stopped, the machine slept, other programs took the CPU.
class Calm {
 public:
  Calm();
  // Why the times since then say nothing about the machine; empty when nothing is known against them.
  std::string disturbed() const;

 private:
  unsigned continued_;
  Seconds slept_, waited_, began_;
};

}  // namespace waywiser
