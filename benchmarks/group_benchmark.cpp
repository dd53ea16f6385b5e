// Latency of messages between two processes of this machine: half the time of a ping-pong, median of samples.
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

constexpr int samples = 101;
constexpr Bytes sizes[] = {8, 64, 512, 4096, 65536, 1 << 20, 16 << 20};

void stay_on_core(int rank) {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  CPU_SET(static_cast<unsigned>(rank), &cores);
  if (::sched_setaffinity(0, sizeof cores, &cores) != 0) std::fprintf(stderr, "group_benchmark: not pinned\n");
}

Seconds half_round_trip(Group& group, std::vector<std::byte>& data, int repetitions) {
  const int other = 1 - group.rank();
  std::vector<Seconds> times;
  for (int sample = 0; sample < samples; ++sample) {
    const Seconds start = now_seconds();
    for (int i = 0; i < repetitions; ++i) {
      if (group.rank() == 0) group.send(std::span(data), other);
      group.recv(std::span(data), other);
      if (group.rank() == 1) group.send(std::span(data), other);
    }
    times.push_back((now_seconds() - start) / (2 * repetitions));
  }
  std::ranges::nth_element(times, times.begin() + samples / 2);
  return times[samples / 2];
}

int run(int rank) {
  stay_on_core(rank);
  JoinOptions options;
  options.launch = Launch{"benchmark", rank, 2, "benchmark-" + std::to_string(::getpgrp()), {}, ""};
  Group group = Group::join(options);
  for (const Bytes bytes : sizes) {
    std::vector<std::byte> data(bytes);
    const int repetitions = static_cast<int>(std::clamp<Bytes>((8 << 20) / bytes, 2, 2000));
    half_round_trip(group, data, 2);
    const Seconds time = half_round_trip(group, data, repetitions);
    if (rank == 0)
      std::printf("%8s  %10s  %s\n", format_bytes(bytes).c_str(), format_seconds(time).c_str(),
                  format_rate(static_cast<double>(bytes) / time).c_str());
  }
  return 0;
}

}  // namespace

int main() { return forked_ranks("group_benchmark", 2, run); }
