// Frames between ranks until the job ends: an input holds the frames of the other ranks, which are gone afterwards.
#include "waywiser/comm/session/lifeline.hpp"

#include <sys/socket.h>

#include <thread>

#include "tests/fuzz/targets.hpp"

namespace waywiser::fuzz {
namespace {

constexpr int group_size = 4;
constexpr std::size_t largest_frame = 4096;

struct Others {
  Muster muster;
  std::vector<Descriptor> sockets;
};

// Rank 0 has a connection to each rank, every other rank one to rank 0.
Others others_of(int rank) {
  Others others;
  for (std::uint32_t i = 0; i < group_size; ++i) {
    Introduction& introduction = others.muster.ranks.emplace_back();
    introduction.rank = i;
    introduction.size = group_size;
    introduction.host = "host";
  }
  for (int other = rank == 0 ? 1 : 0; other < (rank == 0 ? group_size : 1); ++other) {
    std::array<int, 2> ends{};
    promise(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends.data()) == 0, "no socket pair");
    others.muster.lines[other] = std::make_unique<Connection>(Descriptor(ends[0]), largest_frame);
    others.sockets.emplace_back(ends[1]);
  }
  return others;
}

void say(const Descriptor& line, Bytes bytes) {
  static_cast<void>(::send(line.number(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT));
}

void play(Choices& choices, std::vector<Descriptor>& lines, Lifeline& lifeline) {
  while (!choices.over()) {
    const std::size_t what = choices.number();
    const Descriptor& line = lines[what / 8 % lines.size()];
    switch (what % 8) {
      case 0: say(line, choices.bytes(choices.number())); break;
      case 1: lifeline.leave(); break;
      case 2: lifeline.tell_waiting({.kind = CallKind::recv, .peer = 1, .count = choices.number()}); break;
      case 3: lifeline.fail(ErrorKind::timeout, "a reason"); break;
      default: {
        const auto kind = static_cast<FrameKind>(choices.number() % (last_frame_kind + 2));
        say(line, frame_bytes(kind, choices.bytes(choices.number())));
      }
    }
  }
}

}  // namespace

void lifeline(Bytes input) {
  Choices choices(input);
  const int rank = choices.number() % 2 == 0 ? 0 : 1;
  Others others = others_of(rank);
  Lifeline lifeline(rank, std::move(others.muster), Lifeline::Callbacks{[] { return std::string("{}"); }});
  play(choices, others.sockets, lifeline);
  lifeline.leave();  // if all other ranks have left in order, none is reported missing
  others.sockets.clear();
  const Deadline deadline = Deadline::in(patience);
  while (lifeline.failure() == nullptr && !lifeline.finished() && !deadline.passed()) std::this_thread::yield();
  promise(!deadline.passed(), "ranks that are gone are not missed");
  if (const std::string* why = lifeline.failure())
    for (const char c : *why) promise(static_cast<unsigned char>(c) >= ' ', "a control character in: " + *why);
}

}  // namespace waywiser::fuzz
