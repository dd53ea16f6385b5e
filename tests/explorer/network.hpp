#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "tests/explorer/explorer.hpp"
#include "waywiser/comm/message/message.hpp"
#include "waywiser/comm/message/tag.hpp"

namespace waywiser::explorer {

// A network between ranks. Messages with one tag arrive in the order in which they were sent; otherwise the schedule
// decides when each arrives. The bytes are read as late as possible, on arrival; the sender's request completes later.
class Network {
 public:
  explicit Network(Course& course) : course_(course) {}

  void send(std::uint32_t from, std::uint32_t to, Tag tag, const void* data, std::size_t bytes, Message& message);
  void receive(std::uint32_t from, std::uint32_t to, Tag tag, Tag mask, void* data, std::size_t bytes,
               Message& message);
  void cancel(Message& message) noexcept;
  // The body of a helper thread: delivers messages, for ever.
  void carry();
  // Nothing is under way or waited for.
  bool is_empty() const noexcept { return sends_.empty() && receives_.empty() && landed_.empty(); }

 private:
  struct Under {
    std::uint32_t from, to;
    Tag tag, mask;
    std::byte* data;
    std::size_t bytes;
    Message* message;
  };
  // Indices into sends_ and receives_.
  struct Pair {
    std::size_t send, receive;
  };
  std::vector<Pair> pairs() const;
  void deliver(Pair pair);

  Course& course_;
  std::vector<Under> sends_, receives_;
  std::vector<Message*> landed_;  // arrived; the requests of their senders are not complete yet
};

}  // namespace waywiser::explorer
