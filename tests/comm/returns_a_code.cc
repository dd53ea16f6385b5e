// A rank whose main() returns 7 while the others wait for it; 1 for those to whom that is an error.
#include <cstdio>
#include <span>

#include "waywiser/base/error.hpp"
#include "waywiser/group/group.hpp"

int main() try {
  waywiser::Group group = waywiser::Group::join();
  if (group.rank() == 1) return 7;
  group.barrier();
  return 0;
} catch (const waywiser::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
