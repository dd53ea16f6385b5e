#pragma once

#include <algorithm>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "waywiser/comm/message/carrier.hpp"
#include "waywiser/comm/message/held_memory.hpp"
#include "waywiser/comm/message/message_list.hpp"
#include "waywiser/comm/shared_memory/lane_mailbox.hpp"
#include "waywiser/policy/defaults.hpp"

namespace waywiser {

// Up to this size UCX copies twice, as it is asked to by UCX_RNDV_SEND_NBR_THRESH or its successors.
inline constexpr std::size_t longest_by_ucx_alone = defaults::ucx_alone;

// Messages between ranks of one machine, through their mailboxes. HostMessageSizes says which travel inline; longer
// ones start with an offer (rendezvous). Then both ranks copy, or UCX sends the bytes through shared memory, which is
// faster if the message is not long and the two cores are close. For messages of collectives up to
// longest_by_ucx_alone, which all ranks send at once, UCX needs no offer.
class MailboxMessages final : public Carrier {
 public:
  // `mask`: the bits of a tag that are matched. `held` then holds what other ranks may still be copying of a message
  // that was given up.
  MailboxMessages(std::size_t ranks, Tag mask, const HostMessageSizes& sizes, HeldMemory& held)
      : mailbox_(ranks), routes_(ranks), mask_(mask), sizes_(sizes), held_(held) {}

  const HostMessageSizes& sizes() const noexcept { return sizes_; }
  // While no message is under way, at all ranks alike.
  void use(const HostMessageSizes& sizes) noexcept { sizes_ = sizes; }
  std::string offer() const { return mailbox_.offer(); }
  // Opens the mailboxes of the ranks that have agreed. Throws unavailable.
  void introduce(const std::vector<Introduction>& ranks, std::uint32_t me) override;

  bool reaches(std::uint32_t peer) const noexcept { return static_cast<bool>(routes_[peer].writer); }
  bool reaches_any() const noexcept { return !peers_.empty(); }
  bool takes(const Message& message) override;
  // The way of a message of a program to a peer that it reaches: one of host_message_ways(). Asks, and may tell of it.
  std::string_view way_to(std::uint32_t peer, std::size_t bytes) noexcept;
  // Says that this rank no longer touches anybody's memory. Any of its threads may call it.
  void tell_halted() noexcept;
  bool has_halted(std::uint32_t peer) const noexcept {
    return reaches(peer) && routes_[peer].from->halted.load(std::memory_order_acquire) != 0;
  }
  void send(Message& message, Awaited awaited) override;
  void receive(Message& message) override;
  bool test(Message& message) override;
  // Sends a short message without a request to wait for. False: it cannot be done at once, and nothing has happened.
  bool send_at_once(std::uint32_t peer, Tag tag, const void* data, std::size_t bytes) {
    Route& route = routes_[peer];
    if (route.sends.first != nullptr || !route.writer.write(tag, static_cast<const std::byte*>(data), bytes))
      return false;
    by_ring_.add(bytes);
    return true;
  }
  std::optional<Received> receive_at_once(std::uint32_t peer, Tag tag, std::byte* into, std::size_t bytes);
  std::optional<Received> probe(std::uint32_t peer, Tag tag, Tag mask) override;
  void cancel(Message& message) noexcept override;
  void tell_sent(SentByMechanism& sent) const override {
    sent["shared ring"] += by_ring_.get();
    sent["process_vm_readv"] += by_copy_.get();
  }
  // Matches arrived messages with receives and retries sends that did not fit. False: nothing moved.
  bool progress();
  bool awaits_any() const noexcept { return awaited_ != 0; }
  // Messages that UCX must carry, under numbers that both ranks know.
  bool leaves_any_to_ucx() const noexcept { return left_to_ucx_.first != nullptr; }
  void hand_over(Carrier& ucx);
  std::vector<const Message*> awaited() const;
  // What has come from the peer with this tag, and no receive has taken.
  std::optional<Received> early(std::uint32_t peer, Tag tag) const noexcept;

 private:
  // Of a message that is offered. by_ucx: as `rest`.
  struct Copy final : CarrierRequest {
    enum class Stage : std::uint8_t { queued, copied, left_to_ucx, by_ucx } stage = Stage::queued;
    bool twice = false;        // UCX then copies it twice
    std::uint32_t number = 0;  // for the case that UCX carries it
    CopyEnd end;
    Tag came_with = 0;
    Message rest;
  };
  struct Early {
    Tag tag;
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
    MessageList sends, receives;
    std::deque<Early> early;
    MessageList offered, incoming;  // messages that are copied
    Trust reads, writes;            // whether the other rank can read here, this one write there
    bool is_here = false;           // in this process
    std::uint64_t process = 0, copies_in_use = 0;
    LaneMemory *to = nullptr, *from = nullptr;
  };

  bool match(Tag one, Tag other) const noexcept { return ((one ^ other) & mask_) == 0; }
  template <typename Of>
  auto find_early(Of& route, Tag tag) const noexcept {
    return std::ranges::find_if(route.early, [&](Tag other) { return match(other, tag); }, &Early::tag);
  }
  bool poll(Route& route, bool all);
  bool send_again(Route& route);
  void deliver(Route& route, const LaneMessage& next);
  void complete(Route& route, Message& message, const LaneMessage& came);
  bool send_now(Route& route, Message& message);
  bool offer(Route& route, Message& message);
  bool is_better_copied_twice(Route& route, std::size_t bytes) noexcept;
  static std::uint32_t free_copy(const Route& route) noexcept;
  void open(Route& route, Message& message, Tag tag, const CopyOffer& offer);
  static bool reads_alone(const Route& route, std::size_t bytes) noexcept;
  static std::uint32_t chunks_at_once(const MessageList& queue, const MessageList& other_way) noexcept;
  bool copy_incoming(Route& route);
  bool copy_offered(Route& route);
  void leave_to_ucx(Message& message);
  static Copy& copy_of(Message& message);
  static void end(Message& message) noexcept;

  LaneMailbox mailbox_;
  std::vector<Route> routes_;  // by rank
  std::vector<std::uint32_t> peers_;
  MessageList left_to_ucx_;
  std::uint32_t me_ = 0;
  std::uint32_t next_number_ = 0;
  Tag mask_;
  std::size_t awaited_ = 0;
  unsigned turns_ = 0;
  HostMessageSizes sizes_;
  HeldMemory& held_;
  SentBytes by_ring_, by_copy_;
};

}  // namespace waywiser
