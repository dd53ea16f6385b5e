#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "waywiser/comm/bootstrap/introduction.hpp"
#include "waywiser/comm/network/encrypted_messages.hpp"
#include "waywiser/comm/network/network_rails.hpp"
#include "waywiser/comm/shared_memory/mailbox_messages.hpp"

namespace waywiser {

// Who does nothing else until a message has gone: then a copy may take the time that a question to the receiver would.
enum class Awaited { later, by_sender, by_all };

// What moves messages between this rank and all others: UCX, endpoints made when they are needed, and the mailboxes of
// this machine. Used by one thread; nothing moves unless it calls progress().
class Engine {
 public:
  // `settings` as UcxContext takes them. `ways`: of long messages between machines, unless the user has said what UCX
  // is to use. `encrypted`: in place of UCX between machines, and of the ways. Without close() nothing is waited for;
  // while connections to other machines are open, UCX is left as it is.
  explicit Engine(std::size_t ranks, const UcxContext::Settings& settings = {}, NetworkPaths ways = NetworkPaths({}),
                  std::unique_ptr<EncryptedMessages> encrypted = {});
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  std::vector<std::byte> address() const { return worker_.address(); }
  std::vector<RailOffer> rails() const { return rails_ ? rails_->offers() : std::vector<RailOffer>(); }
  // Before the first message: tags of UCX are hidden by it, so that a stranger who cannot read them cannot make one.
  // Those of mailboxes are not.
  void set_tag_key(ucp_tag_t key) noexcept {
    tag_key_ = key;
    if (rails_) rails_->set_tag_key(key);
  }
  // Who the others are; `me` among them. UCX is connected to all of this machine now: whose first message it finds
  // later may have ended, and it crashes where it must attach to the memory of such a process. Here it says that it
  // cannot; then it gets no turn, and whatever needs it throws.
  void introduce(const std::vector<Introduction>& ranks, std::uint32_t me);

  std::string mailbox() const { return mailboxes_.offer(); }
  // Where this rank takes encrypted messages; empty: it takes none.
  std::string encrypted() const { return encrypted_ ? encrypted_->offer() : ""; }
  bool is_encrypted(std::uint32_t peer) const noexcept { return encrypted_ && encrypted_->reaches(peer); }
  // "openssl" or "kernel"; empty: nothing, or nothing has been sent yet.
  std::string encrypted_by(std::uint32_t peer) const { return encrypted_ ? encrypted_->encrypted_by(peer) : ""; }

  // UCX gets fewer turns while it has nothing to do for a message.
  void progress() {
    if (rails_) rails_->progress();
    if (encrypted_) encrypted_->progress();
    if (!peers_have_mailboxes_) {
      turn_ucx();
      return;
    }
    const bool moved = mailboxes_.progress();
    if (mailboxes_.leaves_any_to_ucx()) take_over();
    const bool can_wait = with_ucx_ == 0 && mailboxes_.awaits_any();
    if (can_wait && (moved || ++turns_without_ucx_ % turns_of_ucx != 0)) return;
    turn_ucx();
  }
  // A message whose length its receiver knows: within a machine by the mailbox where there is one.
  void send_sized(std::uint32_t peer, ucp_tag_t tag, const void* data, std::size_t bytes, Message& message,
                  Awaited awaited = Awaited::later);
  void receive_sized(std::uint32_t peer, ucp_tag_t tag, void* data, std::size_t bytes, Message& message);
  // An empty message in place of a longer one.
  void send_rts(std::uint32_t peer, ucp_tag_t tag, Message& message);
  // The same without anything to wait for; false where that is not possible at once: nothing has happened then.
  bool send_at_once(std::uint32_t peer, ucp_tag_t tag, const void* data, std::size_t bytes) {
    return bytes <= longest_short && mailboxes_.reaches(peer) && mailboxes_.send_at_once(peer, tag, data, bytes);
  }
  std::optional<ucp_tag_recv_info_t> receive_at_once(std::uint32_t peer, ucp_tag_t tag, std::byte* data,
                                                     std::size_t bytes) {
    if (bytes > longest_short || !mailboxes_.reaches(peer)) return {};
    return mailboxes_.receive_at_once(peer, tag, data, bytes);
  }
  // Of an awaited message of known length: another one with its tag has come the other way, so its length is wrong.
  std::optional<std::string> wrong_length() const;
  // Not by the mailbox, whatever the length.
  void send(std::uint32_t peer, ucp_tag_t tag, const void* data, std::size_t bytes, Message& message,
            Awaited awaited = Awaited::later);
  void receive(std::uint32_t peer, ucp_tag_t tag, ucp_tag_t mask, void* data, std::size_t bytes, Message& message);
  // By one of the plan's ways between machines (find_way(): from this rank to the peer), where why_no_way() is empty;
  // both know the length. A region of a GPU where the way reads GPUs.
  const NetworkPaths& ways() const noexcept { return ways_; }
  std::optional<std::size_t> find_way(std::uint32_t peer, Place source, Place destination, Bytes bytes) const {
    return ways_.find(source, destination, bytes, peers_[peer].ends, true);
  }
  std::string why_no_way(std::size_t way, std::uint32_t peer, bool sends) const;
  void send_by(std::size_t way, std::uint32_t peer, ucp_tag_t tag, ConstRegion data, Message& message);
  void receive_by(std::size_t way, std::uint32_t peer, ucp_tag_t tag, Region into, Message& message);
  // True: complete. A receive of a longer message throws invalid_input; everything else that goes wrong io, naming the
  // peer.
  bool test(Message& message) {
    return !message.waiting && (message.request == nullptr || test_request(message)) &&
           (message.railed == nullptr || test_railed(message));
  }
  // For messages that are given up: they may be gone afterwards, their memory when nothing of it is held any more.
  void cancel(Message& message) noexcept;
  // The same for a request of one-sided access.
  void give_up_one_sided(UcxRequest request, std::uint32_t peer) noexcept;
  HeldMemory& held() noexcept { return held_; }
  // So that what UCX has under way may end; no message is begun.
  void progress_ucx() noexcept;
  // Whether `process_has_ended` can be asked of a peer.
  bool sees(std::uint32_t peer) const noexcept { return mailboxes_.reaches(peer); }
  // Between ranks that have mailboxes: this one touches nobody's memory any more; whether another one has said so.
  void tell_halted() noexcept { mailboxes_.tell_halted(); }
  bool has_halted(std::uint32_t peer) const noexcept { return mailboxes_.has_halted(peer); }

  ucp_worker_h worker() const noexcept { return worker_.get(); }
  ucp_context_h context() const noexcept { return worker_.context(); }
  ucp_ep_h endpoint(std::uint32_t peer) { return connected(peer).get(); }
  // Called with what UCX could not do, before it is thrown: somebody may know why.
  void set_explainer(std::function<void(const std::string&)> explainer) { explainer_ = std::move(explainer); }
  // Throws io, unless the status is good: as the explainer says, or "UCX cannot ...".
  void check(ucs_status_t status, const std::string& what) const;
  // A connection that broke by itself: its peer; nothing while all is well.
  std::optional<std::string> broken() const;
  // Whether that may be since the peer has died, of which others may know more.
  bool broken_by_an_end() const noexcept { return !encrypted_ || !encrypted_->came_wrong(); }
  // Lets what was sent arrive, then ends the connections.
  void close(Deadline deadline) noexcept;

 private:
  struct Peer {
    bool same_machine = true;
    std::vector<std::byte> address;
    std::unique_ptr<UcxEndpoint> endpoint;
    PlanEnds ends;
  };
  // Of this machine: UCX could not be connected to it.
  struct Unreached {
    std::uint32_t rank;
    ucs_status_t problem;
  };

  void take_over();
  bool goes_by_copies(std::uint32_t peer, std::size_t bytes, Awaited awaited) const;
  bool test_request(Message& message);
  // `reached`: by the peer. `needs`: what the request uses.
  void give_up(UcxRequest request, std::uint32_t peer, bool reached, const std::shared_ptr<void>& needs) noexcept;
  bool peer_reaches_memory(std::uint32_t peer, ucp_tag_t tag, std::size_t bytes) const;
  std::optional<std::size_t> way_of_long(std::uint32_t peer, std::size_t bytes, bool sends);
  bool test_railed(Message& message);
  ucs_status_t connect(Peer& peer);
  UcxEndpoint& connected(std::uint32_t peer);
  void turn_ucx() noexcept {
    if (!unreached_) worker_.progress();
  }
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
  std::function<void(const std::string&)> explainer_;
};

}  // namespace waywiser
