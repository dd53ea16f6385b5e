#pragma once

#include <optional>
#include <string>

#include "waywiser/collective/messages/message_landing.hpp"
#include "waywiser/policy/planned_ways.hpp"

namespace waywiser {

// How a message between GPUs travels, as plans and measurements name it: "LL", "LL128" or "bulk", or with its number of
// blocks "LL128(blocks=16)".
struct MessageAlgorithm {
  messages::Kind kind = messages::Kind::ll;
  unsigned blocks = 0;  // 0: the default
};

std::string text(const MessageAlgorithm& algorithm);
// Empty if it is another way.
std::optional<MessageAlgorithm> message_algorithm(const Way& way);
// The choice without a measurement.
MessageAlgorithm default_message_algorithm(Bytes bytes, bool ll128);

// The plan's algorithms for messages on streams, read once. All ranks follow one plan, so both ends make the same
// choice.
class MessageAlgorithms {
 public:
  explicit MessageAlgorithms(const Chooser* chooser);  // nullptr: no plan

  // For measuring, at all ranks: the only algorithm until another one is set; empty: the choice.
  void set(std::optional<MessageAlgorithm> only) { only_ = only; }
  // Throws unavailable if only LL128 is allowed and the ranks do not have it, invalid_input for more blocks than a
  // message has channels. Without LL128 the plan's LL128 is ignored.
  MessageAlgorithm of(Bytes bytes, bool ll128) const;

 private:
  PlannedWays<MessageAlgorithm> planned_;
  std::optional<MessageAlgorithm> only_;
};

namespace messages {

// Divides `bytes` into pieces on the first `blocks` channels; equal at both ends.
void cut(MessagePart& part, const Layout& layout, const MessageAlgorithm& algorithm);

}  // namespace messages
}  // namespace waywiser
