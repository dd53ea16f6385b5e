#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "waywiser/base/units.hpp"
#include "waywiser/comm/message/message.hpp"
#include "waywiser/comm/message/sent_bytes.hpp"

namespace waywiser {

struct Introduction;

// What a blocked sender waits for. A sender that blocks until its send completes can afford a copy instead of a
// rendezvous.
enum class Awaited { later, by_sender, by_all };

// One way in which messages reach other ranks; the engine has a table of them. Used by one thread; bytes move only in
// its turns, progress().
class Carrier {
 public:
  // All ranks, `me` included; called before the first message.
  virtual void introduce(const std::vector<Introduction>& ranks, std::uint32_t me) = 0;
  // Whether it carries a message of known length. Both ends get the same answer.
  virtual bool takes(const Message& message) = 0;
  // Begin what the message says. They set its state.
  virtual void send(Message& message, Awaited awaited) = 0;
  virtual void receive(Message& message) = 0;
  // Of a message whose state is `asked`. True: it is complete. Throws io, naming the peer.
  virtual bool test(Message& message) = 0;
  // Gives an open message up. What may still be done with its memory is then in the engine's HeldMemory.
  virtual void cancel(Message& message) noexcept = 0;
  // The first message of the peer that no receive has taken and that matches the tag in the bits of `mask`.
  virtual std::optional<Received> probe(std::uint32_t peer, Tag tag, Tag mask) = 0;
  // Adds what it has sent so far, in bytes. Any thread may call it after the first introduce().
  virtual void tell_sent(SentByMechanism& /*sent*/) const {}
  // Which connection broke by itself, and why.
  virtual std::optional<std::string> broken() const { return {}; }
  // Waits until sent messages are on their way. `turn`: of all carriers, for which other ranks may wait.
  virtual void close(Deadline, const std::function<void()>& /*turn*/) noexcept {}

 protected:
  ~Carrier() = default;
};

// True: the message is complete, or was never begun. A longer message than was wanted counts: the caller compares.
inline bool is_complete(Message& message) {
  return message.state == Message::State::complete ||
         (message.state == Message::State::asked && message.carrier->test(message));
}

}  // namespace waywiser
