#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "waywiser/base/units.hpp"
#include "waywiser/collective/messages/message_landing.hpp"

namespace waywiser {

class Chooser;

// How a message between GPUs goes, as plans and measurements name it: "LL", "LL128" or "bulk", or with its number of
// blocks "LL128(blocks=16)".
struct MessageAlgorithm {
  messages::Kind kind = messages::Kind::ll;
  unsigned blocks = 0;  // 0: the default
};

std::string text(const MessageAlgorithm& algorithm);
// Nothing when it is none.
std::optional<MessageAlgorithm> parse_message_algorithm(std::string_view text);
// Where nothing was measured.
MessageAlgorithm default_message_algorithm(Bytes bytes, bool ll128);

// What a plan says of messages on streams, read once. All ranks follow one plan, so both ends choose alike.
class MessageAlgorithms {
 public:
  explicit MessageAlgorithms(const Chooser* chooser);  // null: nothing

  // For measuring, at all ranks: the only one until another is set; nothing: the choice.
  void set(std::optional<MessageAlgorithm> only) { only_ = only; }
  // Throws unavailable where the only one is LL128 and the ranks have none, invalid_input for more blocks than a
  // message has channels. A plan's LL128 is passed over there.
  MessageAlgorithm of(Bytes bytes, bool ll128) const;

 private:
  struct Row {
    Bytes from, to;
    MessageAlgorithm algorithm;
  };
  std::vector<Row> rows_;
  std::optional<MessageAlgorithm> only_;
};

namespace messages {

// The first `blocks` channels carry `bytes` in pieces; the same at both ends.
void cut(MessagePart& part, const Layout& layout, const MessageAlgorithm& algorithm);

}  // namespace messages
}  // namespace waywiser
