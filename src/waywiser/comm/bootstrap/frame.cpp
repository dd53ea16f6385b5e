#include "waywiser/comm/bootstrap/frame.hpp"

#include <algorithm>
#include <utility>

#include "waywiser/base/error.hpp"

namespace waywiser {
namespace {

constexpr std::uint32_t magic = 0x31475757;  // "WWG1"
constexpr std::size_t header_bytes = 9;
constexpr std::size_t longest_reason = 1000;
constexpr std::string_view frame_name = "message of a rank";

std::string read_reason(WireReader& reader) {
  std::string reason = reader.text(longest_reason);
  reader.end();
  std::ranges::replace_if(reason, [](unsigned char c) { return c < ' ' || c == 0x7f; }, ' ');
  return reason;
}

}  // namespace

std::optional<FrameReader::Head> FrameReader::read_head() {
  if (pending_.size() < header_bytes) return {};
  WireReader header(pending_, frame_name);
  if (header.number<std::uint32_t>() != magic) header.refuse("not one of ours (wrong first bytes)");
  const auto kind = header.number<std::uint8_t>();
  const auto length = header.number<std::uint32_t>();
  if (kind == 0 || kind > last_frame_kind) header.refuse("kind " + std::to_string(kind) + " is unknown");
  if (length > most_)
    header.refuse("announces " + std::to_string(length) + " bytes; the limit is " + std::to_string(most_));
  pending_.erase(pending_.begin(), pending_.begin() + header_bytes);
  return Head{static_cast<FrameKind>(kind), length};
}

// A body of many bytes is the memory into which they came.
std::optional<Frame> FrameReader::next() {
  if (!head_) head_ = read_head();
  if (!head_) return {};
  const auto [kind, length] = *head_;
  const std::size_t marked = seal_ != nullptr ? Seal::mark_bytes : 0;
  if (pending_.size() < length + marked) {
    pending_.reserve(length + marked);
    return {};
  }
  const std::span all(pending_);
  if (seal_ != nullptr && !seal_->open(frame_head(kind, length), all.first(length), all.subspan(length, marked)))
    throw Error(ErrorKind::invalid_input,
                std::string(frame_name) + ": not from the expected sender: its authentication tag is wrong");
  std::vector<std::byte> rest(pending_.begin() + static_cast<std::ptrdiff_t>(length + marked), pending_.end());
  pending_.resize(length);
  head_.reset();
  return Frame{kind, std::exchange(pending_, std::move(rest))};
}

std::vector<std::byte> frame_head(FrameKind kind, std::size_t length) {
  WireWriter writer;
  writer.number(magic);
  writer.number(static_cast<std::uint8_t>(kind));
  writer.number(static_cast<std::uint32_t>(length));
  return std::move(writer).bytes();
}

std::vector<std::byte> frame_bytes(FrameKind kind, std::span<const std::byte> body) {
  std::vector<std::byte> frame = frame_head(kind, body.size());
  frame.resize(header_bytes + body.size());
  std::ranges::copy(body, frame.begin() + header_bytes);
  return frame;
}

void seal_frame(std::vector<std::byte>& frame, Seal& seal) {
  const std::span all(frame);
  const Seal::Mark mark = seal.close(all.first(header_bytes), all.subspan(header_bytes));
  frame.insert(frame.end(), mark.begin(), mark.end());
}

Frame refused_frame(const std::string& why) {
  WireWriter writer;
  writer.text(why.substr(0, longest_reason));
  return {FrameKind::refused, writer.bytes()};
}

std::string reason_in(const Frame& frame) {
  WireReader reader(frame.body, frame_name);
  return read_reason(reader);
}

Frame failed_frame(ErrorKind kind, const std::string& why) {
  WireWriter writer;
  writer.number(static_cast<std::uint8_t>(kind));
  writer.text(why.substr(0, longest_reason));
  return {FrameKind::failed, writer.bytes()};
}

Error error_in(const Frame& frame) {
  WireReader reader(frame.body, frame_name);
  const auto kind = reader.number<std::uint8_t>();
  if (kind > static_cast<std::uint8_t>(ErrorKind::interrupted)) reader.refuse("an unknown kind of error");
  return {static_cast<ErrorKind>(kind), read_reason(reader)};
}

}  // namespace waywiser
