// What the check for a second thread costs, and what JoinOptions::threads does: half a ping-pong of 8 bytes between two
// processes of this machine, by one thread of each rank, and by several, each in a group of its own. Medians of samples
// that take turns.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <thread>
#include <vector>

#include "benchmarks/forked_ranks.hpp"
#include "waywiser/comm/bootstrap/join_options.hpp"
#include "waywiser/comm/session/call_lock.hpp"
#include "waywiser/group/group.hpp"

using namespace waywiser;

namespace {

constexpr int samples = 21, repetitions = 20000;

JoinOptions options_of(int rank, bool threads) {
  JoinOptions options;
  options.launch =
      Launch{"benchmark", rank, 2, "threads-" + std::to_string(::getpgrp()) + (threads ? "-shared" : ""), {}, ""};
  options.threads = threads;
  return options;
}

void ping_pong(Group& group, int count) {
  std::uint64_t word = 0;
  const int other = 1 - group.rank();
  for (int i = 0; i < count; ++i) {
    if (group.rank() == 0) group.send(std::span<const std::uint64_t>(&word, 1), other);
    group.recv(std::span(&word, 1), other);
    if (group.rank() != 0) group.send(std::span<const std::uint64_t>(&word, 1), other);
  }
}

// Half a round trip, of each thread.
Seconds half_round_trip(std::vector<Group>& groups, int count) {
  const Seconds start = now_seconds();
  std::vector<std::thread> threads;
  for (std::size_t i = 1; i < groups.size(); ++i) threads.emplace_back([&, i] { ping_pong(groups[i], count); });
  ping_pong(groups[0], count);
  for (std::thread& thread : threads) thread.join();
  return (now_seconds() - start) / (2 * count);
}

Seconds median(std::vector<Seconds> times) {
  std::ranges::nth_element(times, times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2));
  return times[times.size() / 2];
}

std::vector<Group> parts_of(Group& group, int count) {
  std::vector<Group> parts;
  for (int i = 0; i < count; ++i) parts.push_back(std::move(*group.split(0)));
  return parts;
}

int run(int rank) {
  Group alone = Group::join(options_of(rank, false)), shared = Group::join(options_of(rank, true));
  std::vector<Group> one_alone = parts_of(alone, 1), one = parts_of(shared, 1), two = parts_of(shared, 2),
                     four = parts_of(shared, 4);
  const std::pair<const char*, std::vector<Group>*> ways[] = {{"one thread at a time", &one_alone},
                                                              {"threads, one of them", &one},
                                                              {"threads, two of them", &two},
                                                              {"threads, four of them", &four}};
  std::vector<std::vector<Seconds>> times(std::size(ways));
  for (int sample = 0; sample < samples; ++sample)
    for (std::size_t way = 0; way < std::size(ways); ++way)
      times[way].push_back(half_round_trip(*ways[way].second, way < 2 ? repetitions : repetitions / 100));
  for (std::size_t way = 0; rank == 0 && way < std::size(ways); ++way)
    std::printf("%-24s  %s\n", ways[way].first, format_seconds(median(times[way])).c_str());
  shared.close();
  alone.close();
  return 0;
}

Seconds lock_and_unlock(bool threads) {
  CallLock lock(threads);
  std::vector<Seconds> times;
  for (int sample = 0; sample < samples; ++sample) {
    constexpr int calls = 100000;
    const Seconds start = now_seconds();
    for (int call = 0; call < calls; ++call) {
      static_cast<void>(lock.lock());
      lock.unlock();
    }
    times.push_back((now_seconds() - start) / calls);
  }
  return median(times);
}

}  // namespace

int main() {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  std::printf("%-24s  %.1f ns\n", "check of one call", lock_and_unlock(false) * 1e9);
  std::printf("%-24s  %.1f ns\n", "lock of one call", lock_and_unlock(true) * 1e9);
  return forked_ranks("threads_benchmark", 2, run);
}
