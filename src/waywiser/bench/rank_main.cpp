#include <signal.h>

#include <charconv>
#include <cstdio>
#include <string_view>

#include "waywiser/base/error.hpp"
#include "waywiser/bench/rank_channel.hpp"
#include "waywiser/measure/platform_choice.hpp"

namespace waywiser {
namespace {

constexpr int most_gpus = 1024;

JoinOptions options_for(const std::string& backend, std::string_view gpus) {
  PlatformChoice choice;
  choice.backend = backend;
  const auto [end, problem] = std::from_chars(gpus.data(), gpus.data() + gpus.size(), choice.machine.gpus);
  if (problem != std::errc() || end != gpus.data() + gpus.size() || choice.machine.gpus < 0 ||
      choice.machine.gpus > most_gpus)
    throw Error(ErrorKind::invalid_input, quoted(gpus, 40) + " is no number of GPUs");
  JoinOptions options;
  options.platform = open_platform(choice);
  return options;
}

void serve(const std::string& socket, const std::string& backend, std::string_view gpus) {
  RankChannel channel(socket);
  BenchRank rank(options_for(backend, gpus));
  channel.serve(rank);
}

// The least program that there is: what starting it costs is the start-up time.
void join_and_leave() {
  Group group = Group::join();
  group.barrier();
  if (group.rank() == 0) std::puts("joined");
}

}  // namespace
}  // namespace waywiser

// waywiser-rank SOCKET BACKEND GPUS: a rank of `waywiser bench`. waywiser-rank join: joins, and that is all.
int main(int count, char** words) {
  const std::string_view first = count > 1 ? words[1] : "";
  if (!(count == 4 || (count == 2 && first == "join"))) {
    std::fputs("waywiser-rank is started by waywiser bench\n", stderr);
    return 2;
  }
  try {
    if (count == 2)
      waywiser::join_and_leave();
    else {
      ::signal(SIGINT, SIG_IGN);  // Ctrl-C is for the program that conducts, which ends this one
      waywiser::serve(words[1], words[2], words[3]);
    }
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "waywiser-rank: %s\n", error.what());
    return 1;
  }
}
