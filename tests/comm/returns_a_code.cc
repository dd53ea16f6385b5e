// A rank whose main() returns 7 while the others wait for it; 1 for those to whom that is an error. With "slowly" its
// connections are closed 0.1 s before its process ends, as on a machine that is busy.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <span>

#include "waywiser/base/error.hpp"
#include "waywiser/group/group.hpp"

namespace {

bool ends_slowly = false;

void end_slowly() {
  if (!ends_slowly) return;
  for (int number = 3; number < ::getdtablesize() && number < 4096; ++number) ::close(number);
  ::usleep(100'000);
}

}  // namespace

int main(int count, char**) try {
  std::atexit(end_slowly);  // runs after what the group does at the end of the process
  waywiser::Group group = waywiser::Group::join();
  ends_slowly = count > 1 && group.rank() == 1;
  if (group.rank() == 1) return 7;
  group.barrier();
  return 0;
} catch (const waywiser::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
