#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "waywiser/base/error.hpp"
#include "waywiser/device/platform.hpp"
#include "waywiser/offload/worker.hpp"

namespace waywiser {

// In place of a client: gives the worker the bytes of arrays, and keeps what it sends.
class MemoryChannel final : public WorkerChannel {
 public:
  explicit MemoryChannel(std::shared_ptr<Platform> platform) : platform_(std::move(platform)) {}

  std::byte fill{};          // of all bytes that the worker receives
  std::string next_message;  // in place of `fill`, once
  std::vector<RemoteReply> replies;
  std::vector<std::byte> sent;  // since the last reply
  bool admits_plain = false;
  std::string plain_secret;
  Bytes received = 0;  // all bytes of arrays that have come as messages
  Descriptor file;     // the memory of the client

  void receive(Region into) override {
    std::vector<std::byte> bytes(into.bytes, fill);
    std::ranges::copy(std::as_bytes(std::span(next_message)), bytes.begin());
    next_message.clear();
    received += into.bytes;
    copy(into, {bytes.data(), bytes.size(), host(0)});
  }
  void receive_text(Region into) override { receive(into); }
  void send_text(ConstRegion data) override { send(data); }
  void open_plain(const std::string& secret, const std::function<void(const std::string& address)>& announce) override {
    if (!admits_plain) throw Error(ErrorKind::unavailable, "not admitted");
    announce("10.0.0.5:4712");
    plain_secret = secret;
  }
  Descriptor open_file_of_client(std::uint64_t number) override {
    if (number != file_number) throw Error(ErrorKind::unavailable, "the client is on another machine");
    return file.duplicate();
  }
  static constexpr std::uint64_t file_number = 5;
  void send(ConstRegion data) override {
    std::vector<std::byte> bytes(data.bytes);
    copy({bytes.data(), bytes.size(), host(0)}, data);
    sent.insert(sent.end(), bytes.begin(), bytes.end());
  }
  void reply(const ReplyFrame& frame) override {
    replies.push_back(read_reply(frame));
    sent.clear();
  }

 private:
  void copy(Region to, ConstRegion from) {
    if (to.bytes == 0) return;
    const auto stream = platform_->open_stream(to.place.is_gpu() ? to.place : from.place);
    stream->copy(to, from);
    stream->synchronize(Deadline::in(20));
  }

  std::shared_ptr<Platform> platform_;
};

inline std::vector<std::byte> frame_with(const std::vector<RemoteRequest>& requests) {
  std::vector<std::byte> frame(2);
  for (const RemoteRequest& request : requests) {
    const std::vector<std::byte> bytes = bytes_of_request(request);
    frame.insert(frame.end(), bytes.begin(), bytes.end());
  }
  const std::size_t used = frame.size() - 2;
  frame[0] = static_cast<std::byte>(used & 0xff);
  frame[1] = static_cast<std::byte>(used >> 8);
  frame.resize(std::max(frame.size(), frame_bytes_of_requests));
  return frame;
}

}  // namespace waywiser
