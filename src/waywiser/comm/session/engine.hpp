#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "waywiser/comm/bootstrap/introduction.hpp"
#include "waywiser/comm/network/encrypted_messages.hpp"
#include "waywiser/comm/network/network_rails.hpp"
#include "waywiser/comm/shared_memory/mailbox_messages.hpp"
#include "waywiser/comm/shared_memory/shm_space.hpp"

namespace waywiser {

// What a blocked sender waits for. A sender that blocks until its send completes can afford a copy instead of a
// rendezvous.
enum class Awaited { later, by_sender, by_all };

// Moves messages between this rank and all others: by UCX, whose endpoints are created on first use, and by the
// mailboxes of this machine. Used by one thread; bytes move only inside progress().
class Engine {
 public:
  // `settings` go to UcxContext. `ways`: the plan's paths for long messages between machines, unless the user has set
  // UCX's transports. `encrypted` replaces UCX and `ways` between machines. Without close() the destructor waits for
  // nothing; while connections to other machines are open, it leaves UCX as it is.
  explicit Engine(std::size_t ranks, const UcxContext::Settings& settings = {}, NetworkPaths ways = NetworkPaths({}),
                  std::unique_ptr<EncryptedMessages> encrypted = {});
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  std::vector<std::byte> address() const { return worker_.address(); }
  std::vector<RailOffer> rails() const { return rails_ ? rails_->offers() : std::vector<RailOffer>(); }
  // Call it before the first message. The key hides UCX tags, so a stranger who cannot read them cannot forge one.
  // Mailbox tags stay plain.
  void set_tag_key(ucp_tag_t key) noexcept {
    tag_key_ = key;
    if (rails_) rails_->set_tag_key(key);
  }
  // Tells the engine who all ranks are, `me` included. It connects UCX to the ranks of this machine now: a later first
  // message might find that the process has ended, and UCX crashes when it attaches to the memory of an ended process.
  // If the connection fails here, UCX gets no turn, and every call that needs it throws. `sharing_shm`: so
  // many ranks use one /dev/shm by UCX; if it fills, progress() throws io.
  void introduce(const std::vector<Introduction>& ranks, std::uint32_t me, unsigned sharing_shm = 0);

  MailboxMessages& mailboxes() noexcept { return mailboxes_; }
  const MailboxMessages& mailboxes() const noexcept { return mailboxes_; }
  // Where this rank accepts encrypted messages; empty: it accepts none.
  std::string encrypted() const { return encrypted_ ? encrypted_->offer() : ""; }
  bool is_encrypted(std::uint32_t peer) const noexcept { return encrypted_ && encrypted_->reaches(peer); }
  // "openssl" or "kernel"; empty: the job does not encrypt, or has not sent to the peer yet.
  std::string encrypted_by(std::uint32_t peer) const { return encrypted_ ? encrypted_->encrypted_by(peer) : ""; }

  // Polls UCX less often while no message needs it.
  void progress() {
    if (rails_) rails_->progress();
    if (encrypted_) encrypted_->progress();
    if (!peers_have_mailboxes_) return take_turn_of_ucx();
    const bool moved = mailboxes_.progress();
    if (mailboxes_.leaves_any_to_ucx()) take_over();
    const bool can_wait = with_ucx_ == 0 && mailboxes_.awaits_any();
    if (can_wait && (moved || ++turns_without_ucx_ % turns_of_ucx != 0)) return;
    take_turn_of_ucx();
  }
  // Sends a message whose length the receiver knows: within a machine by the mailbox, if there is one.
  void send_sized(std::uint32_t peer, ucp_tag_t tag, const void* data, std::size_t bytes, Message& message,
                  Awaited awaited = Awaited::later);
  void receive_sized(std::uint32_t peer, ucp_tag_t tag, void* data, std::size_t bytes, Message& message);
  // Sends an empty message that announces a longer one.
  void send_rts(std::uint32_t peer, ucp_tag_t tag, Message& message);
  // Sends without a request to wait for. False: it cannot be done at once, and nothing has happened.
  bool send_at_once(std::uint32_t peer, ucp_tag_t tag, const void* data, std::size_t bytes) {
    return bytes <= longest_short && mailboxes_.reaches(peer) && mailboxes_.send_at_once(peer, tag, data, bytes);
  }
  std::optional<ucp_tag_recv_info_t> receive_at_once(std::uint32_t peer, ucp_tag_t tag, std::byte* data,
                                                     std::size_t bytes) {
    if (bytes > longest_short || !mailboxes_.reaches(peer)) return {};
    return mailboxes_.receive_at_once(peer, tag, data, bytes);
  }
  // The first message of one of `peers`, ranks of the session, that no receive has taken and that matches the tag in
  // the bits of `mask`; each peer in turn is asked first. The length of a message by rails is that of its header.
  std::optional<ucp_tag_recv_info_t> probe(std::span<const int> peers, ucp_tag_t tag, ucp_tag_t mask);
  // Receives a message by rails whose header has been received.
  void receive_headed(std::uint32_t peer, ucp_tag_t tag, const MessageHead& head, void* data, std::size_t bytes,
                      Message& message);
  // For awaited messages of known length: the error, if the message came by the other way, which proves that its length
  // is wrong.
  std::optional<std::string> wrong_length() const;
  // Never uses the mailbox, whatever the length.
  void send(std::uint32_t peer, ucp_tag_t tag, const void* data, std::size_t bytes, Message& message,
            Awaited awaited = Awaited::later);
  void receive(std::uint32_t peer, ucp_tag_t tag, ucp_tag_t mask, void* data, std::size_t bytes, Message& message);
  // Send and receive by one of the plan's ways between machines (find_way(): from this rank to the peer), if
  // why_no_way() is empty; both ends know the length. The region may lie on a GPU if the way reads GPUs.
  const NetworkPaths& ways() const noexcept { return ways_; }
  std::optional<std::size_t> find_way(std::uint32_t peer, Place source, Place destination, Bytes bytes) const {
    return ways_.find(source, destination, bytes, peers_[peer].ends, true);
  }
  std::string why_no_way(std::size_t way, std::uint32_t peer, bool sends) const;
  void send_by(std::size_t way, std::uint32_t peer, ucp_tag_t tag, ConstRegion data, Message& message);
  void receive_by(std::size_t way, std::uint32_t peer, ucp_tag_t tag, Region into, Message& message);
  // True: the message is complete. Throws invalid_input if a longer message came, and io, naming the peer, for every
  // other error.
  bool test(Message& message) {
    return !message.waiting && (message.request == nullptr || test_request(message)) &&
           (message.railed == nullptr || test_railed(message));
  }
  // Gives a message up. The message may be destroyed afterwards; its memory only when held() holds nothing of it any
  // more.
  void cancel(Message& message) noexcept;
  // Gives up a request of one-sided access in the same way.
  void give_up_one_sided(UcxRequest request, std::uint32_t peer) noexcept;
  HeldMemory& held() noexcept { return held_; }
  // Lets UCX finish what is under way; starts no message.
  void progress_ucx() noexcept;
  const UcxWorker& ucx() const noexcept { return worker_; }
  ucp_ep_h endpoint(std::uint32_t peer) { return connected(peer).get(); }
  // The explainer is called with the text of a UCX error before it is thrown: it may know a better reason.
  void set_explainer(std::function<void(const std::string&)> explainer) { explainer_ = std::move(explainer); }
  // Throws io if the status is an error: with the explainer's text, or "UCX cannot ...".
  void check(ucs_status_t status, const std::string& what) const;
  // The peer of a connection that broke by itself, if there is one.
  std::optional<std::string> broken() const;
  // Whether the death of the peer may be the reason; then other ranks may know more.
  bool broken_by_an_end() const noexcept { return !encrypted_ || !encrypted_->came_wrong(); }
  // Waits until sent messages have arrived, then ends the connections.
  void close(Deadline deadline) noexcept;

 private:
  struct Peer {
    bool same_machine = true;
    std::vector<std::byte> address;
    std::unique_ptr<UcxEndpoint> endpoint;
    PlanEnds ends;
  };
  // A rank of this machine to which UCX could not connect.
  struct Unreached {
    std::uint32_t rank;
    ucs_status_t problem;
  };

  void take_over();
  bool goes_by_copies(std::uint32_t peer, std::size_t bytes, Awaited awaited) const;
  bool test_request(Message& message);
  // `reached`: the request has reached the peer. `needs`: the memory that it uses.
  void give_up(UcxRequest request, std::uint32_t peer, bool reached, const std::shared_ptr<void>& needs) noexcept;
  bool peer_reaches_memory(std::uint32_t peer, ucp_tag_t tag, std::size_t bytes) const;
  std::optional<ucp_tag_recv_info_t> probe_ucx(std::span<const int> peers, ucp_tag_t tag, ucp_tag_t mask) const;
  std::optional<std::size_t> way_of_long(std::uint32_t peer, std::size_t bytes, bool sends);
  bool test_railed(Message& message);
  ucs_status_t connect(Peer& peer);
  UcxEndpoint& connected(std::uint32_t peer);
  void turn_ucx() noexcept {
    if (!unreached_) shm_.note(worker_.progress());
  }
  void take_turn_of_ucx() {
    turn_ucx();
    if (shm_.is_due()) [[unlikely]]
      look_at_shm();
  }
  void look_at_shm();
  void require_ucx() const {
    if (unreached_) check_connected(unreached_->rank, unreached_->problem);
  }
  void check_connected(std::uint32_t peer, ucs_status_t status) const;

  std::vector<Peer> peers_;
  UcxWorker worker_;
  NetworkPaths ways_;
  std::unique_ptr<NetworkRails> rails_;  // nullptr: the plan has no ways
  std::unique_ptr<EncryptedMessages> encrypted_;
  std::uint32_t me_ = 0;
  ucp_tag_t tag_key_ = 0;
  std::optional<Unreached> unreached_;
  HeldMemory held_;
  Bytes longest_copied_;
  static constexpr unsigned turns_of_ucx = 16;
  MailboxMessages mailboxes_;
  bool peers_have_mailboxes_ = false;
  unsigned turns_without_ucx_ = 0;
  std::size_t with_ucx_ = 0;  // messages
  ShmGuard shm_;
  std::size_t first_probed_ = 0;
  std::function<void(const std::string&)> explainer_;
};

}  // namespace waywiser
