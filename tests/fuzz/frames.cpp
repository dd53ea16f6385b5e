// Frames of ranks, in pieces as they come from a socket, and everything that reads their bodies.
#include "tests/fuzz/targets.hpp"
#include "waywiser/comm/bootstrap/frame.hpp"
#include "waywiser/comm/bootstrap/handshake.hpp"
#include "waywiser/comm/bootstrap/introduction.hpp"
#include "waywiser/comm/message/call.hpp"

namespace waywiser::fuzz {
namespace {

constexpr std::size_t largest_body = 4096;

void read_body(const Frame& frame) {
  promise(frame.body.size() <= largest_body, "a body above the limit");
  const auto reader = [&] { return WireReader(frame.body, "message"); };
  reads_or_refuses([&] { read_hello(frame); });
  reads_or_refuses([&] { read_digest(frame); });
  reads_or_refuses([&] { read_nonce(frame); });
  reads_or_refuses([&] {
    for (const char c : reason_in(frame)) promise(static_cast<unsigned char>(c) >= ' ', "a control character");
  });
  reads_or_refuses([&] {
    auto words = reader();
    text(read_call(words));
  });
  reads_or_refuses([&] {
    auto words = reader();
    const Introduction introduction = read_introduction(words);
    words.end();
    WireWriter writer;
    write(writer, introduction);
    promise(writer.bytes().size() == frame.body.size(), "an introduction that changes by writing");
  });
  reads_or_refuses([&] {
    auto words = reader();
    read_table(words, 4);
  });
}

}  // namespace

void frames(Bytes input) {
  Choices choices(input);
  const std::size_t how = choices.number(), piece = 1 + how / 2;
  FrameReader reader(largest_body);
  Seal seal = Handshake{}.member_seal(Secret("the secret of a job"));
  if (how % 2 == 1) reader.expect_seal(&seal);  // no input has valid seals: no frame may come out
  reads_or_refuses([&] {
    while (!choices.over()) {
      reader.feed(choices.bytes(piece));
      while (const auto frame = reader.next()) {
        promise(how % 2 == 0, "a frame without its mark");
        read_body(*frame);
      }
    }
  });
}

}  // namespace waywiser::fuzz
