// Short calls between two processes of this machine, each on a core of its own: ns a call, lower quartile of samples.
// host_calls_benchmark [BYTES [CALLS [NAME]]]: NAME is one of those below, alone.
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "benchmarks/forked_ranks.hpp"
#include "waywiser/base/units.hpp"
#include "waywiser/comm/bootstrap/join_options.hpp"
#include "waywiser/group/group.hpp"

using namespace waywiser;

namespace {

constexpr std::size_t samples = 41;
constexpr int window = 64;

struct Arrays {
  std::vector<float> in, out, all;
};

struct Timed {
  const char* name;
  int parts;  // a call counts as so many
  std::function<void(Group&, Arrays&)> call;
  std::function<bool(int rank, const Arrays&)> right;  // what is there afterwards
};

bool all_are(float wanted, std::span<const float> values) {
  return std::ranges::all_of(values, [=](float value) { return value == wanted; });
}

float of_other(int rank) { return static_cast<float>(2 - rank); }

void ping_pong(Group& group, Arrays& arrays) {
  const int other = 1 - group.rank();
  if (group.rank() == 0) group.send(std::span(arrays.in), other);
  group.recv(std::span(arrays.out), other);
  if (group.rank() == 1) group.send(std::span(arrays.in), other);
}

// A window of messages one way, then a short answer.
void stream(Group& group, Arrays& arrays) {
  const int other = 1 - group.rank();
  std::vector<Future> begun;
  for (int i = 0; i < window; ++i)
    begun.push_back(group.rank() == 0 ? group.send(std::span(arrays.in), other, 0, Mode::begin)
                                      : group.recv(std::span(arrays.out), other, 0, Mode::begin));
  for (Future& each : begun) each.wait();
  const auto answer = std::span(arrays.out).first(1);
  group.rank() == 0 ? group.recv(answer, other, 1) : group.send(answer, other, 1);
}

// A rank has 1 + its number in `in`, rank 0 has 7 in `out`.
const Timed calls[] = {
    {"barrier", 1, [](Group& group, Arrays&) { group.barrier(); }, [](int, const Arrays&) { return true; }},
    {"broadcast", 1, [](Group& group, Arrays& arrays) { group.broadcast(std::span(arrays.out), 0); },
     [](int, const Arrays& arrays) { return all_are(7, arrays.out); }},
    {"all_reduce", 1,
     [](Group& group, Arrays& arrays) { group.all_reduce(std::span(arrays.in), std::span(arrays.out)); },
     [](int, const Arrays& arrays) { return all_are(3, arrays.out); }},
    {"all_gather", 1,
     [](Group& group, Arrays& arrays) { group.all_gather(std::span(arrays.in), std::span(arrays.all)); },
     [](int, const Arrays& arrays) {
       const std::span all(arrays.all);
       return all_are(1, all.first(all.size() / 2)) && all_are(2, all.last(all.size() / 2));
     }},
    {"latency", 2, ping_pong, [](int rank, const Arrays& arrays) { return all_are(of_other(rank), arrays.out); }},
    {"bandwidth", window, stream,
     [](int rank, const Arrays& arrays) { return rank == 0 || all_are(of_other(rank), arrays.out); }},
};

// Each sample ends when both ranks have made its calls.
double lower_quartile(Group& group, const Timed& timed, Arrays& arrays, int repetitions) {
  std::vector<Seconds> times;
  for (std::size_t sample = 0; sample <= samples; ++sample) {  // the first does not count
    group.barrier();
    const Seconds start = now_seconds();
    for (int i = 0; i < repetitions; ++i) timed.call(group, arrays);
    group.barrier();
    if (sample != 0) times.push_back((now_seconds() - start) / repetitions / timed.parts);
  }
  std::ranges::nth_element(times, times.begin() + samples / 4);
  return times[samples / 4];
}

int run(int rank, std::size_t bytes, int repetitions, std::string_view only) {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  CPU_SET(static_cast<unsigned>(rank), &cores);
  if (::sched_setaffinity(0, sizeof cores, &cores) != 0) std::fprintf(stderr, "host_calls_benchmark: not pinned\n");
  JoinOptions options;
  options.launch = Launch{"benchmark", rank, 2, "host-calls-" + std::to_string(::getpgrp()), {}, ""};
  Group group = Group::join(options);
  const std::size_t count = std::max<std::size_t>(1, bytes / sizeof(float));
  Arrays arrays{std::vector<float>(count, static_cast<float>(rank + 1)), std::vector<float>(count),
                std::vector<float>(2 * count)};
  for (const Timed& timed : calls) {
    if (!only.empty() && only != timed.name) continue;
    std::ranges::fill(arrays.out, rank == 0 ? 7.0f : 0.0f);
    std::ranges::fill(arrays.all, 0.0f);
    const double ns = 1e9 * lower_quartile(group, timed, arrays, std::max(1, repetitions / timed.parts));
    if (rank == 0) std::printf("%-10s %8zu B %9.1f ns\n", timed.name, count * sizeof(float), ns);
    if (timed.right(rank, arrays)) continue;
    std::fprintf(stderr, "host_calls_benchmark: rank %d has wrong values after %s\n", rank, timed.name);
    return 1;
  }
  return 0;
}

}  // namespace

int main(int count, char** words) {
  const std::size_t bytes = count > 1 ? std::strtoul(words[1], nullptr, 10) : 8;
  const int repetitions = count > 2 ? std::atoi(words[2]) : 1000;
  if (bytes == 0 || repetitions < 1) {
    std::fprintf(stderr, "host_calls_benchmark: BYTES and CALLS are above 0\n");
    return 2;
  }
  const std::string_view only = count > 3 ? words[3] : "";
  if (!only.empty() && std::ranges::none_of(calls, [&](const Timed& timed) { return only == timed.name; })) {
    std::fprintf(stderr, "host_calls_benchmark: there is no call %s\n", words[3]);
    return 2;
  }
  return forked_ranks("host_calls_benchmark", 2, [&](int rank) { return run(rank, bytes, repetitions, only); });
}
