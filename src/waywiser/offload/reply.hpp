#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>

#include "waywiser/base/error.hpp"
#include "waywiser/offload/array_head.hpp"
#include "waywiser/offload/remote_times.hpp"

namespace waywiser {

// Why a request has failed, in one line, and more lines, as those of a compiler.
struct RemoteFailure {
  ErrorKind kind = ErrorKind::invalid_input;
  std::string text;
  std::string details = {};
};

// What a worker says about all requests so far.
struct RemoteReply {
  std::optional<RemoteFailure> failure;  // of the first request that failed since the last reply
  Bytes used = 0;                        // bytes of the client's arrays
  std::uint64_t requests = 0;
  ServerTimes times;
  std::optional<ArrayHead> head;  // of the array whose bytes follow
  bool placed = false;            // they do not: they are in memory of the client; of pin: it can be used
  std::uint32_t details = 0;      // bytes of the failure's details, or of the text, which follow
  std::string text = {};          // of an answer to ask
  std::string address = {};       // where another worker, or the client, is waited for
  Seconds since = 0;              // between two events

  static constexpr std::size_t bytes = 1024;
};

using ReplyFrame = std::array<std::byte, RemoteReply::bytes>;
ReplyFrame frame_of(const RemoteReply& reply);
inline constexpr std::size_t longest_details = 16 << 10;
// Throws invalid_input.
RemoteReply read_reply(std::span<const std::byte> frame);

}  // namespace waywiser
