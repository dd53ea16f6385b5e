// A halo exchange between two processes of this machine, prepared and not: time of a call, medians of samples that are
// taken by turns, and their ratio.
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <vector>

#include "benchmarks/forked_ranks.hpp"
#include "waywiser/base/error.hpp"
#include "waywiser/comm/bootstrap/join_options.hpp"
#include "waywiser/group/group.hpp"

using namespace waywiser;

namespace {

constexpr int samples = 101, repetitions = 200, faces = 6;
constexpr std::size_t sizes[] = {8, 512, 4096, 65536};

void stay_on_core(int rank) {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  CPU_SET(static_cast<unsigned>(rank), &cores);
  if (::sched_setaffinity(0, sizeof cores, &cores) != 0) std::fprintf(stderr, "prepared_benchmark: not pinned\n");
}

template <typename Call>
Seconds time_of(Call call) {
  const Seconds start = now_seconds();
  for (int i = 0; i < repetitions; ++i) call();
  return (now_seconds() - start) / repetitions;
}

Seconds median(std::vector<Seconds>& times) {
  std::ranges::nth_element(times, times.begin() + samples / 2);
  return times[samples / 2];
}

// All faces with the other rank, as in a box of two.
void compare(Group& group, std::size_t bytes) {
  std::vector<std::vector<std::byte>> give(faces), take(faces);
  std::vector<Exchange> neighbors;
  for (int face = 0; face < faces; ++face) {
    const auto index = static_cast<std::size_t>(face);
    give[index].resize(bytes);
    take[index].resize(bytes);
    neighbors.push_back({1 - group.rank(), std::span(give[index]), std::span(take[index]), face, face});
  }
  Prepared prepared = group.prepare_exchange(neighbors);
  std::vector<Seconds> plain, started;
  for (int sample = 0; sample < samples; ++sample) {
    plain.push_back(time_of([&] { group.neighbor_exchange(neighbors); }));
    started.push_back(time_of([&] {
      prepared.start();
      prepared.wait();
    }));
  }
  const Seconds unprepared = median(plain), start = median(started);
  if (group.rank() == 0)
    std::printf("%d x %8s  %10s  prepared %10s  ratio %.2f\n", faces, format_bytes(bytes).c_str(),
                format_seconds(unprepared).c_str(), format_seconds(start).c_str(), start / unprepared);
}

int run(int rank) {
  stay_on_core(rank);
  JoinOptions options;
  options.launch = Launch{"benchmark", rank, 2, "prepared-" + std::to_string(::getpgrp()), {}, ""};
  Group group = Group::join(options);
  for (const std::size_t bytes : sizes) compare(group, bytes);
  return 0;
}

}  // namespace

int main() { return forked_ranks("prepared_benchmark", 2, run); }
