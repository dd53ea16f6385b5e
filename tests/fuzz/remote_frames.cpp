// Frames of requests and replies between a client and its worker, without the worker: what is read can be written, and
// read again as the same.
#include "tests/fuzz/frame_count.hpp"
#include "tests/fuzz/targets.hpp"
#include "waywiser/offload/reply.hpp"
#include "waywiser/offload/request.hpp"

namespace waywiser::fuzz {
namespace {

std::vector<std::byte> frame_of_one(const RemoteRequest& request) {
  const std::vector<std::byte> bytes = bytes_of_request(request);
  std::vector<std::byte> frame{static_cast<std::byte>(bytes.size() & 0xff), static_cast<std::byte>(bytes.size() >> 8)};
  frame.insert(frame.end(), bytes.begin(), bytes.end());
  return frame;
}

void requests(Bytes frame) {
  reads_or_refuses([&] {
    RequestReader reader(frame);
    while (const auto request = reader.next()) {
      const std::vector<std::byte> again = frame_of_one(*request);
      promise(again.size() <= frame.size(), "a request that grows");
      RequestReader second(again);
      const auto read = second.next();
      // A number may be no number, which equals nothing: then the bytes are compared.
      promise(read && bytes_of_request(*read) == bytes_of_request(*request), "another request");
      promise(!second.next(), "a request more");
    }
  });
}

void reply(Bytes frame) {
  reads_or_refuses([&] {
    const ReplyFrame again = frame_of(read_reply(frame));
    promise(frame_of(read_reply(again)) == again, "another reply");
  });
}

}  // namespace

void remote_frames(Bytes input) {
  static FrameCount count;
  Choices choices(input);
  while (!choices.over()) {
    ++count.frames;
    const std::size_t low = choices.number(), high = choices.number();
    const Bytes frame = choices.bytes(low + 256 * (high % 4));
    if (high < 128)
      requests(frame);
    else
      reply(frame);
  }
}

}  // namespace waywiser::fuzz
