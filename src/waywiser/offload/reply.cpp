#include "waywiser/offload/reply.hpp"

#include <algorithm>
#include <bit>

#include "waywiser/comm/message/wire.hpp"
#include "waywiser/offload/array_head_wire.hpp"
#include "waywiser/offload/worker_line.hpp"

namespace waywiser {
namespace {

constexpr std::size_t longest_failure = 480;
constexpr std::uint8_t error_kinds = 7;
constexpr unsigned has_head = 1, is_placed = 2;

void write_seconds(WireWriter& writer, Seconds value) { writer.number(std::bit_cast<std::uint64_t>(value)); }
Seconds read_seconds(WireReader& reader) { return std::bit_cast<Seconds>(reader.number<std::uint64_t>()); }

template <typename Times, typename Function>
void each_interval(Times& times, Function function) {
  for (auto* interval : {&times.input, &times.compute, &times.device, &times.output}) function(*interval);
}

// Cut between two characters of UTF-8.
std::string short_line(std::string_view text) {
  std::size_t most = longest_failure;
  while (most < text.size() && most > 0 && (static_cast<unsigned char>(text[most]) & 0xc0) == 0x80) --most;
  return in_one_line(text.substr(0, most));
}

}  // namespace

ReplyFrame frame_of(const RemoteReply& reply) {
  WireWriter writer;
  writer.number(static_cast<std::uint8_t>(reply.failure ? static_cast<int>(reply.failure->kind) + 1 : 0));
  writer.text(reply.failure ? short_line(reply.failure->text) : "");
  writer.number(reply.used);
  writer.number(reply.requests);
  each_interval(reply.times, [&](const RemoteInterval& interval) {
    for (const Seconds value : {interval.total, interval.begin, interval.end}) write_seconds(writer, value);
  });
  write_seconds(writer, reply.times.now);
  writer.number(static_cast<std::uint8_t>((reply.head ? has_head : 0) | (reply.placed ? is_placed : 0)));
  if (reply.head) write(writer, *reply.head);
  writer.number(reply.details);
  writer.text(reply.address);
  write_seconds(writer, reply.since);
  ReplyFrame frame{};
  std::ranges::copy(writer.bytes(), frame.begin());
  return frame;
}

RemoteReply read_reply(std::span<const std::byte> frame) {
  WireReader reader(frame, "the server's reply");
  RemoteReply reply;
  const auto kind = reader.number<std::uint8_t>();
  if (kind > error_kinds) reader.refuse("an unknown kind of error, " + std::to_string(kind));
  std::string text = short_line(reader.text(longest_failure));
  if (kind != 0) reply.failure = RemoteFailure{static_cast<ErrorKind>(kind - 1), std::move(text), {}};
  reply.used = reader.number<std::uint64_t>();
  reply.requests = reader.number<std::uint64_t>();
  each_interval(reply.times, [&](RemoteInterval& interval) {
    for (Seconds* value : {&interval.total, &interval.begin, &interval.end}) *value = read_seconds(reader);
  });
  reply.times.now = read_seconds(reader);
  const auto flags = reader.number<std::uint8_t>();
  if ((flags & has_head) != 0) reply.head = read_array_head(reader);
  reply.placed = (flags & is_placed) != 0;
  reply.details = reader.number<std::uint32_t>();
  reply.address = short_line(reader.text(longest_address));
  reply.since = read_seconds(reader);
  if (reply.details > longest_details) reader.refuse("more details than any failure has");
  return reply;
}

}  // namespace waywiser
