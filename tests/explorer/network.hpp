#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "tests/explorer/explorer.hpp"
#include "waywiser/comm/session/message.hpp"
#include "waywiser/comm/session/tag.hpp"

namespace waywiser::explorer {

// Between ranks: messages of one tag come in their order, and beyond that each when the schedule says so. The bytes are
// read as late as may be, when they come; the sender hears of it later still.
class Network {
 public:
  explicit Network(Course& course) : course_(course) {}

  void send(std::uint32_t from, std::uint32_t to, ucp_tag_t tag, const void* data, std::size_t bytes, Message& message);
  void receive(std::uint32_t from, std::uint32_t to, ucp_tag_t tag, ucp_tag_t mask, void* data, std::size_t bytes,
               Message& message);
  void cancel(Message& message) noexcept;
  // A helper thread: delivers messages that are under way, for ever.
  void carry();
  // Nothing is under way or waited for.
  bool is_empty() const noexcept { return sends_.empty() && receives_.empty() && landed_.empty(); }

 private:
  struct Under {
    std::uint32_t from, to;
    ucp_tag_t tag, mask;
    std::byte* data;
    std::size_t bytes;
    Message* message;
  };
  // Each an index into sends_ and into receives_.
  struct Pair {
    std::size_t send, receive;
  };
  std::vector<Pair> pairs() const;
  void deliver(Pair pair);

  Course& course_;
  std::vector<Under> sends_, receives_;
  std::vector<Message*> landed_;  // their senders have not heard of it
};

}  // namespace waywiser::explorer
