#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "waywiser/comm/message/carrier.hpp"
#include "waywiser/comm/network/encrypted_messages.hpp"
#include "waywiser/comm/network/network_rails.hpp"
#include "waywiser/comm/network/ucx_messages.hpp"
#include "waywiser/comm/shared_memory/mailbox_messages.hpp"

namespace waywiser {

// Moves messages between this rank and all others, each by one of its carriers. Used by one thread; bytes move only
// inside progress().
class Engine {
 public:
  // `settings` go to UcxContext. `ways`: the plan's paths for long messages between machines, unless the user has set
  // UCX's transports. `encrypted` replaces UCX and `ways` between machines. `chooser`: the plan,
  // for messages within a machine. Without close() the destructor waits for
  // nothing.
  explicit Engine(std::size_t ranks, const UcxContext::Settings& settings = {}, NetworkPaths ways = NetworkPaths({}),
                  std::unique_ptr<EncryptedMessages> encrypted = {}, const Chooser* chooser = nullptr);
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  std::vector<RailOffer> rails() const { return rails_ ? rails_->offers() : std::vector<RailOffer>(); }
  // Tells the carriers who all ranks are, `me` included.
  void introduce(const std::vector<Introduction>& ranks, std::uint32_t me);

  UcxMessages& ucx() noexcept { return ucx_; }
  const UcxMessages& ucx() const noexcept { return ucx_; }
  MailboxMessages& mailboxes() noexcept { return mailboxes_; }
  const MailboxMessages& mailboxes() const noexcept { return mailboxes_; }
  bool is_encrypted(std::uint32_t peer) const noexcept { return encrypted_ && encrypted_->reaches(peer); }
  // "openssl" or "kernel"; empty: the job does not encrypt, or has not sent to the peer yet.
  std::string encrypted_by(std::uint32_t peer) const { return encrypted_ ? encrypted_->encrypted_by(peer) : ""; }

  // Polls UCX less often while no message needs it.
  void progress() {
    if (rails_) rails_->progress();
    if (encrypted_) encrypted_->progress();
    if (!peers_have_mailboxes_) return ucx_.progress();
    const bool moved = mailboxes_.progress();
    if (mailboxes_.leaves_any_to_ucx()) mailboxes_.hand_over(ucx_);
    const bool can_wait = ucx_.open() == 0 && mailboxes_.awaits_any();
    if (can_wait && (moved || ++turns_without_ucx_ % turns_of_ucx != 0)) return;
    ucx_.progress();
  }
  // Bytes that each mechanism has sent. Any thread may call it after introduce().
  SentByMechanism sent() const;
  // Messages whose length the receiver knows: the first carrier that takes them.
  void send_sized(std::uint32_t peer, Tag tag, const void* data, std::size_t bytes, Message& message,
                  Awaited awaited = Awaited::later);
  void receive_sized(std::uint32_t peer, Tag tag, void* data, std::size_t bytes, Message& message);
  // Sends without a request to wait for. False: it cannot be done at once, and nothing has happened.
  bool send_at_once(std::uint32_t peer, Tag tag, const void* data, std::size_t bytes) {
    return bytes <= mailboxes_.sizes().lane && mailboxes_.reaches(peer) &&
           mailboxes_.send_at_once(peer, tag, data, bytes);
  }
  std::optional<Received> receive_at_once(std::uint32_t peer, Tag tag, std::byte* data, std::size_t bytes) {
    if (bytes > mailboxes_.sizes().lane || !mailboxes_.reaches(peer)) return {};
    return mailboxes_.receive_at_once(peer, tag, data, bytes);
  }
  // The first message of one of `peers`, ranks of the session, that no receive has taken and that matches the tag in
  // the bits of `mask`; each peer in turn is asked first. The length of a message by rails is that of its header.
  std::optional<Received> probe(std::span<const int> peers, Tag tag, Tag mask);
  // Receives a message by rails whose header has been received.
  void receive_headed(std::uint32_t peer, Tag tag, const MessageHead& head, void* data, std::size_t bytes,
                      Message& message);
  // For awaited messages of known length: the error, if the message came by the other way, which proves that its length
  // is wrong.
  std::optional<std::string> wrong_length();
  // Never use the mailbox or rails, whatever the length.
  void send(std::uint32_t peer, Tag tag, const void* data, std::size_t bytes, Message& message);
  void receive(std::uint32_t peer, Tag tag, void* data, std::size_t bytes, Message& message);
  // Send and receive by one of the plan's ways between machines (find_way(): from this rank to the peer), if
  // why_no_way() is empty; both ends know the length. The region may lie on a GPU if the way reads GPUs.
  const NetworkPaths& ways() const noexcept { return ways_; }
  std::optional<std::size_t> find_way(std::uint32_t peer, Place source, Place destination, Bytes bytes) const {
    return ways_.find(source, destination, bytes, peers_[peer].ends, true);
  }
  std::string why_no_way(std::size_t way, std::uint32_t peer, bool sends) const;
  void send_by(std::size_t way, std::uint32_t peer, Tag tag, ConstRegion data, Message& message);
  void receive_by(std::size_t way, std::uint32_t peer, Tag tag, Region into, Message& message);
  // How a message of a program, out of host memory, reaches the peer: one of host_message_ways() within a machine;
  // "encrypted"; a path of the plan; or "ucx", which chooses by itself.
  std::string way_to(std::uint32_t peer, std::size_t bytes);
  // True: the message is complete. Throws io, naming the peer.
  bool test(Message& message) { return is_complete(message); }
  // Gives a message up. The message may be destroyed afterwards; its memory only when held() holds nothing of it any
  // more.
  void cancel(Message& message) noexcept {
    if (message.is_open()) message.carrier->cancel(message);
  }
  HeldMemory& held() noexcept { return held_; }
  // Lets UCX finish what is under way; starts no message.
  void progress_ucx() noexcept;
  // The connection that broke by itself, if there is one.
  std::optional<std::string> broken() const;
  // Whether the death of the peer may be the reason; then other ranks may know more.
  bool broken_by_an_end() const noexcept { return !encrypted_ || !encrypted_->came_wrong(); }
  // Waits until sent messages have arrived, then ends the connections.
  void close(Deadline deadline) noexcept;

 private:
  struct Peer {
    Carrier* line = nullptr;   // of messages of any length
    Carrier* first = nullptr;  // of short ones
    PlanEnds ends;
  };
  Carrier& carrier_of(const Message& message);

  UcxMessages ucx_;
  NetworkPaths ways_;
  std::unique_ptr<NetworkRails> rails_;  // nullptr: the plan has no ways
  std::unique_ptr<EncryptedMessages> encrypted_;
  HeldMemory held_;
  MailboxMessages mailboxes_;
  std::vector<Carrier*> carriers_;  // in this order: the first one that takes a message carries it; the last takes all
  std::vector<Peer> peers_;
  bool peers_have_mailboxes_ = false;
  static constexpr unsigned turns_of_ucx = 16;
  unsigned turns_without_ucx_ = 0;
  std::size_t first_probed_ = 0;
};

}  // namespace waywiser
