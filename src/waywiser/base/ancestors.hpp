#pragma once

#include <string>
#include <vector>

namespace waywiser {

// A process above this one, as far as this user may see it.
struct Ancestor {
  // Its number and when it began, in the kernel's ticks: together never used twice while the machine runs.
  std::string identity;
  // Its command line; words are separated by spaces.
  std::string command;
  // The environment that it began with, each entry followed by a null character; empty if it cannot be read.
  std::string environment;
};

// The parent of this process first, up to the first process of the machine or container, which is left out.
std::vector<Ancestor> ancestors();

}  // namespace waywiser
