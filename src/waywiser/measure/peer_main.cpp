#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <cstdio>
#include <span>
#include <string_view>
#include <utility>

#include "waywiser/base/error.hpp"
#include "waywiser/measure/pair_side.hpp"

namespace {

// The open file whose number the parent process has passed on; nothing if no file has that number.
waywiser::Descriptor given(std::string_view word) {
  int number = -1;
  const auto [rest, problem] = std::from_chars(word.data(), word.data() + word.size(), number);
  if (problem != std::errc{} || rest != word.data() + word.size() || ::fcntl(number, F_SETFD, FD_CLOEXEC) != 0)
    return {};
  return waywiser::Descriptor(number);
}

waywiser::Seal read_seal(const waywiser::Descriptor& keys) {
  std::array<std::byte, waywiser::Seal::packed_bytes> bytes{};
  const ssize_t got = ::read(keys.number(), bytes.data(), bytes.size());
  waywiser::Seal seal = waywiser::Seal::unpack(std::span(bytes).first(got > 0 ? static_cast<std::size_t>(got) : 0));
  waywiser::wipe(bytes);
  return seal;
}

}  // namespace

// waywiser-peer CHANNEL [KEYS]: the second process of a measurement; CHANNEL is the number of an open socket, KEYS that
// of a pipe with the keys of that connection.
int main(int count, char** words) {
  waywiser::Descriptor line = given(count > 1 ? words[1] : "");
  const waywiser::Descriptor keys = given(count > 2 ? words[2] : "");
  if (count > 3 || !line.open() || (count == 3 && !keys.open())) {
    std::fputs("waywiser-peer is started by waywiser measure, with the number of an open channel\n", stderr);
    return 2;
  }
  ::signal(SIGINT, SIG_IGN);  // Ctrl-C is for the first process, which ends this one
  try {
    return waywiser::serve_as_peer({std::move(line), keys.open() ? read_seal(keys) : waywiser::Seal()});
  } catch (const std::exception& error) {
    std::fprintf(stderr, "waywiser-peer: %s\n", error.what());
    return 1;
  }
}
