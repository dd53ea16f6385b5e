#pragma once

#include <algorithm>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "waywiser/comm/message/held_memory.hpp"
#include "waywiser/comm/message/message.hpp"
#include "waywiser/comm/message/tag.hpp"
#include "waywiser/comm/shared_memory/lane_mailbox.hpp"
#include "waywiser/policy/defaults.hpp"

namespace waywiser {

// Up to this size UCX copies twice, as it is asked to by UCX_RNDV_SEND_NBR_THRESH or its successors.
inline constexpr std::size_t longest_by_ucx_alone = defaults::ucx_alone;

// Messages between ranks of one machine, through their mailboxes. Messages up to longest_short bytes travel inline;
// longer ones start with an offer (rendezvous). Then both ranks copy, or UCX sends the bytes through shared memory,
// which is faster if the message is not long and the two cores are close. For messages of collectives up to
// longest_by_ucx_alone, which all ranks send at once, UCX needs no offer.
class MailboxMessages {
 public:
  // `mask`: the bits of a tag that are matched. `longest_twice`: the longest message that UCX's double copy serves
  // well.
  MailboxMessages(std::size_t ranks, ucp_tag_t mask, std::size_t longest_twice)
      : mailbox_(ranks), routes_(ranks), mask_(mask), longest_twice_(longest_twice) {}

  std::string offer() const { return mailbox_.offer(); }
  // Opens the mailboxes of the ranks that have agreed. False: none has. Throws unavailable.
  bool introduce(const std::vector<Introduction>& ranks, std::uint32_t me);

  bool reaches(std::uint32_t peer) const noexcept { return static_cast<bool>(routes_[peer].writer); }
  // Sender and receiver both know tag and length, so both know which way a message goes.
  bool takes(std::uint32_t peer, ucp_tag_t tag, std::size_t bytes) const noexcept {
    return reaches(peer) && (bytes <= longest_short || bytes > longest_by_ucx_alone || !is_of_collective(tag));
  }
  // Says that this rank no longer touches anybody's memory. Any of its threads may call it.
  void tell_halted() noexcept;
  bool has_halted(std::uint32_t peer) const noexcept {
    return reaches(peer) && routes_[peer].from->halted.load(std::memory_order_acquire) != 0;
  }
  void send(Message& message);
  void receive(Message& message);
  // Sends a short message without a request to wait for. False: it cannot be done at once, and nothing has happened.
  bool send_at_once(std::uint32_t peer, ucp_tag_t tag, const void* data, std::size_t bytes) {
    Route& route = routes_[peer];
    return route.sends.first == nullptr && route.writer.write(tag, static_cast<const std::byte*>(data), bytes);
  }
  std::optional<ucp_tag_recv_info_t> receive_at_once(std::uint32_t peer, ucp_tag_t tag, std::byte* into,
                                                     std::size_t bytes);
  // The first message of the peer that no receive has taken and that matches the tag in the bits of `mask`.
  std::optional<ucp_tag_recv_info_t> probe(std::uint32_t peer, ucp_tag_t tag, ucp_tag_t mask);
  // `held` then holds the memory that the other rank may still be copying.
  void cancel(Message& message, HeldMemory& held) noexcept;
  // Matches arrived messages with receives and retries sends that did not fit. False: nothing moved.
  bool progress();
  bool awaits_any() const noexcept { return awaited_ != 0; }
  // Messages that UCX must carry, with their numbers. Each is returned once; nullptr: no more.
  bool leaves_any_to_ucx() const noexcept { return left_to_ucx_.first != nullptr; }
  Message* next_left_to_ucx() noexcept {
    Message* first = left_to_ucx_.first;
    if (first != nullptr) left_to_ucx_.remove(*first);
    return first;
  }
  // Lists a message that UCX alone carries, so that a wrong length is detected.
  void list(Message& message) noexcept;
  void unlist(Message& message) noexcept;
  std::vector<const Message*> awaited() const;
  // A listed message whose tag has arrived through the mailbox.
  std::optional<std::pair<const Message*, ucp_tag_recv_info_t>> unlike_listed() const;

 private:
  struct Queue {
    Message* first = nullptr;
    Message* last = nullptr;
    void append(Message& message) noexcept;
    void prepend(Message& message) noexcept;
    bool remove(const Message& message) noexcept;
  };
  struct Early {
    ucp_tag_t tag;
    std::vector<std::byte> data;
    bool is_offer;
    LaneMessage message() const noexcept { return {tag, data.data(), data.size(), is_offer}; }
  };
  // Whether a system call works that some memory or a sandbox forbids; after a refusal it is not tried forever.
  class Trust {
   public:
    explicit operator bool() const noexcept { return failures_ < most_failures; }
    void note(bool good) noexcept { failures_ = good ? 0 : failures_ + 1; }
    void lose() noexcept { failures_ = most_failures; }

   private:
    static constexpr unsigned most_failures = 4;
    unsigned failures_ = 0;
  };
  struct Route {
    LaneWriter writer;
    LaneReader reader;
    Queue sends, receives;
    std::deque<Early> early;
    Queue offered, incoming;  // messages that are copied
    Trust reads, writes;      // whether the other rank can read here, this one write there
    bool is_here = false;     // in this process
    std::uint64_t process = 0, copies_in_use = 0;
    LaneMemory *to = nullptr, *from = nullptr;
  };

  bool match(ucp_tag_t one, ucp_tag_t other) const noexcept { return ((one ^ other) & mask_) == 0; }
  template <typename Of>
  auto find_early(Of& route, ucp_tag_t tag) const noexcept {
    return std::ranges::find_if(route.early, [&](ucp_tag_t other) { return match(other, tag); }, &Early::tag);
  }
  bool poll(Route& route);
  bool send_again(Route& route);
  void deliver(Route& route, const LaneMessage& next);
  void complete(Route& route, Message& message, const LaneMessage& came);
  bool send_now(Route& route, Message& message);
  bool offer(Route& route, Message& message);
  bool is_better_copied_twice(Route& route, const Message& message) const noexcept;
  static std::uint32_t free_copy(const Route& route) noexcept;
  void open(Route& route, Message& message, ucp_tag_t tag, const CopyOffer& offer);
  static std::uint32_t chunks_at_once(const Queue& queue) noexcept;
  bool copy_incoming(Route& route);
  bool copy_offered(Route& route);
  void leave_to_ucx(Message& message);

  LaneMailbox mailbox_;
  std::vector<Route> routes_;  // by rank
  std::vector<std::uint32_t> peers_;
  Queue left_to_ucx_, listed_;
  std::uint32_t next_number_ = 0;
  ucp_tag_t mask_;
  std::size_t awaited_ = 0;
  unsigned turns_ = 0;
  std::size_t longest_twice_;
};

}  // namespace waywiser
