#include <cstdio>
#include <span>
#include <vector>
#include <waywiser/waywiser.hpp>

int main() {
  waywiser::Group group = waywiser::Group::join();
  std::vector<double> x(1000, group.rank() + 1);
  group.all_reduce(std::span(x), std::span(x));
  std::printf("rank %d of %d: %g\n", group.rank(), group.size(), x[999]);
  group.close();
}
