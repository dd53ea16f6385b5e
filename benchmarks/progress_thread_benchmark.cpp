// What the progress thread costs, between two processes of this machine that take each other for ranks of two machines:
// half a ping-pong in host memory without the thread and with it, and of messages on streams of virtual GPUs, which the
// thread carries out. The fastest of some samples: the others say how busy the machine is.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <vector>

#include "benchmarks/forked_ranks.hpp"
#include "waywiser/base/error.hpp"
#include "waywiser/comm/bootstrap/join_options.hpp"
#include "waywiser/comm/session/progress_thread.hpp"
#include "waywiser/device/virtual_gpu/virtual_machine.hpp"
#include "waywiser/group/group.hpp"

using namespace waywiser;

namespace {

constexpr int samples = 15;
constexpr Bytes sizes[] = {8, 65536, 1 << 20};

enum class Way { without_thread, with_thread, on_streams };
constexpr const char* names[] = {"hosts, no thread", "hosts, with the thread", "virtual GPUs, by the thread"};

JoinOptions options_of(int rank, Way way) {
  const std::string job = "progress-" + std::to_string(::getpgrp()) + "-" + std::to_string(static_cast<int>(way));
  JoinOptions options;
  options.launch = Launch{"benchmark", rank, 2, job, {}, ""};
  options.launch->machine = "machine " + std::to_string(rank);
  options.progress_thread = way == Way::with_thread;
  VirtualMachine machine;
  machine.gpus = 1;
  if (way == Way::on_streams) options.platform = open_virtual_platform(machine);
  return options;
}

template <typename Call>
Seconds half_round_trip(Group& group, int repetitions, Call call) {
  std::vector<Seconds> times;
  for (int sample = 0; sample < samples; ++sample) {
    group.barrier();
    const Seconds start = now_seconds();
    for (int i = 0; i < repetitions; ++i) call(group.rank() == 0), call(group.rank() != 0);
    times.push_back((now_seconds() - start) / (2 * repetitions));
  }
  return std::ranges::min(times);
}

Seconds on_hosts(Group& group, Bytes bytes, int repetitions) {
  std::vector<std::byte> data(bytes);
  const int other = 1 - group.rank();
  return half_round_trip(group, repetitions, [&](bool sends) {
    sends ? static_cast<void>(group.send(std::span(data), other))
          : static_cast<void>(group.recv(std::span(data), other));
  });
}

// Each message is waited for by the stream alone, as a program does.
Seconds on_streams(Group& group, Bytes bytes, int repetitions) {
  const auto stream = group.platform()->open_stream(gpu(0));
  const Memory memory = group.platform()->allocate(gpu(0), bytes, Allocation::gpu);
  const Elements data(memory.region().slice(0, bytes), DataType::uint8);
  const int other = 1 - group.rank();
  group.barrier(Mode::on(*stream));
  return half_round_trip(group, repetitions, [&](bool sends) {
    if (sends)
      group.send(data, other, 0, Mode::on(*stream));
    else
      group.recv(data, other, 0, Mode::on(*stream));
    stream->synchronize(Deadline::in(60));
  });
}

int run(int rank) {
  for (const Way way : {Way::without_thread, Way::with_thread, Way::on_streams}) {
    Group group = Group::join(options_of(rank, way));
    for (const Bytes bytes : sizes) {
      const int repetitions = way == Way::on_streams ? 5 : 50;
      const Seconds time =
          way == Way::on_streams ? on_streams(group, bytes, repetitions) : on_hosts(group, bytes, repetitions);
      if (rank == 0)
        std::printf("%-28s %8s  %s\n", names[static_cast<int>(way)], format_bytes(bytes).c_str(),
                    format_seconds(time).c_str());
    }
    group.close();
  }
  return 0;
}

// What each call of the program pays for a thread that sleeps.
Seconds lock_and_unlock() {
  CallLock lock(false);
  lock.add_thread();
  ProgressThread thread(lock, [] { return ProgressThread::Found::nothing; }, {});
  thread.start();
  Seconds least = 1;
  for (int sample = 0; sample < 100; ++sample) {
    constexpr int calls = 10000;
    const Seconds start = now_seconds();
    for (int call = 0; call < calls; ++call) {
      static_cast<void>(lock.lock());
      lock.unlock();
    }
    least = std::min(least, (now_seconds() - start) / calls);
  }
  return least;
}

}  // namespace

int main() {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  std::printf("%-28s %8s  %s\n", "lock and unlock", "", format_seconds(lock_and_unlock()).c_str());
  return forked_ranks("progress_thread_benchmark", 2, run);
}
