#include <fcntl.h>
#include <signal.h>

#include <charconv>
#include <cstdio>
#include <string_view>

#include "waywiser/base/error.hpp"
#include "waywiser/measure/pair_side.hpp"

// waywiser-peer CHANNEL: the second process of a measurement; CHANNEL is the number of an open Unix socket.
int main(int count, char** words) {
  int number = -1;
  const std::string_view word = count == 2 ? words[1] : "";
  const auto [rest, problem] = std::from_chars(word.data(), word.data() + word.size(), number);
  if (problem != std::errc{} || rest != word.data() + word.size() || ::fcntl(number, F_SETFD, FD_CLOEXEC) != 0) {
    std::fputs("waywiser-peer is started by waywiser measure, with the number of an open channel\n", stderr);
    return 2;
  }
  ::signal(SIGINT, SIG_IGN);  // Ctrl-C is for the first process, which ends this one
  try {
    return waywiser::serve_as_peer(waywiser::Descriptor(number));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "waywiser-peer: %s\n", error.what());
    return 1;
  }
}
