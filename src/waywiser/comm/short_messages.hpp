#pragma once

#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "waywiser/comm/lane_mailbox.hpp"
#include "waywiser/comm/message.hpp"

namespace waywiser {

// Messages of at most longest_short bytes between ranks of one machine, through their mailboxes. Sender and receiver
// both know how long a message is, and so both know that it goes this way.
class ShortMessages {
 public:
  // `mask`: the bits of a tag that are matched.
  ShortMessages(std::size_t ranks, ucp_tag_t mask) : mailbox_(ranks), routes_(ranks), mask_(mask) {}

  std::string offer() const { return mailbox_.offer(); }
  // Opens the mailboxes of those who have agreed. False: nobody has. Throws unavailable.
  bool introduce(const std::vector<Introduction>& ranks, std::uint32_t me);

  bool reaches(std::uint32_t peer, std::size_t bytes) const noexcept {
    return bytes <= longest_short && static_cast<bool>(routes_[peer].writer);
  }
  void send(Message& message);
  void receive(Message& message);
  // Without anything to wait for: false where it is not possible at once. Nothing has happened then.
  bool send_at_once(std::uint32_t peer, ucp_tag_t tag, const void* data, std::size_t bytes) {
    Route& route = routes_[peer];
    return route.sends.first == nullptr && route.writer.write(tag, static_cast<const std::byte*>(data), bytes);
  }
  std::optional<ucp_tag_recv_info_t> receive_at_once(std::uint32_t peer, ucp_tag_t tag, std::byte* into,
                                                     std::size_t bytes);
  void cancel(Message& message) noexcept;
  // What has come finds its place, what could not be sent is tried again. False: nothing moved.
  bool progress();
  bool awaits_any() const noexcept { return awaited_ != 0; }
  // Longer ones, which come by UCX, are known here so that wrong lengths are found out.
  void list(Message& longer) noexcept;
  void unlist(Message& longer) noexcept;

  std::vector<const Message*> awaited() const;
  // A longer one that is awaited, while a short one with its tag has come.
  std::optional<std::pair<const Message*, ucp_tag_recv_info_t>> too_short() const;

 private:
  struct Queue {
    Message* first = nullptr;
    Message* last = nullptr;
    void append(Message& message) noexcept;
    bool remove(const Message& message) noexcept;
  };
  struct Early {
    ucp_tag_t tag;
    std::vector<std::byte> data;
  };
  struct Route {
    LaneWriter writer;
    LaneReader reader;
    Queue sends, receives;
    std::deque<Early> early;
  };

  bool poll(Route& route);
  bool send_again(Route& route);
  void deliver(Route& route, const LaneMessage& next);
  static void complete(Message& message, const LaneMessage& came) noexcept;

  LaneMailbox mailbox_;
  std::vector<Route> routes_;  // by rank
  std::vector<std::uint32_t> peers_;
  ucp_tag_t mask_;
  std::size_t awaited_ = 0;
  unsigned turns_ = 0;
  Queue longer_;
};

}  // namespace waywiser
