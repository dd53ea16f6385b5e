#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "waywiser/comm/bootstrap/introduction.hpp"
#include "waywiser/comm/message/call.hpp"
#include "waywiser/comm/message/carrier.hpp"
#include "waywiser/comm/message/held_memory.hpp"
#include "waywiser/comm/message/message_list.hpp"
#include "waywiser/comm/shared_memory/shm_space.hpp"
#include "waywiser/transport/ucx/ucx_memory.hpp"

namespace waywiser {

// Messages by UCX, which reaches all ranks, this one included. Its endpoints are created on first use.
class UcxMessages final : public Carrier {
 public:
  // `settings` go to UcxContext. `held` then holds what the other rank may still access of a message that was given up.
  // Without close() the destructor waits for nothing; while connections to other machines are open, it leaves UCX as it
  // is.
  UcxMessages(std::size_t ranks, const UcxContext::Settings& settings, HeldMemory& held);

  std::vector<std::byte> address() const { return worker_.address(); }
  // Call it before the first message. The key hides tags, so a stranger who cannot read them cannot forge one.
  void set_tag_key(Tag key) noexcept { tag_key_ = key; }
  Tag tag_key() const noexcept { return tag_key_; }
  // So many ranks use one /dev/shm by UCX; if it fills, progress() throws io.
  void watch_shm(unsigned ranks) noexcept { shm_.watch(ranks); }
  // Connects to the ranks of this machine now: a later first message might find that the process has ended, and UCX
  // crashes when it attaches to the memory of an ended process. If the connection fails here, UCX gets no turn, and
  // every call that needs it throws.
  void introduce(const std::vector<Introduction>& ranks, std::uint32_t me) override;

  bool takes(const Message&) override { return true; }
  void send(Message& message, Awaited awaited) override;
  void receive(Message& message) override;
  bool test(Message& message) override;
  void cancel(Message& message) noexcept override { give_up(message, nullptr); }
  // The same. `needs`: the memory that it uses.
  void give_up(Message& message, const std::shared_ptr<void>& needs) noexcept;
  // Of any peer: the tag alone tells them apart.
  std::optional<Received> probe(std::uint32_t peer, Tag tag, Tag mask) override;
  void tell_sent(SentByMechanism& sent) const override { sent["UCX"] += sent_.get(); }
  std::optional<std::string> broken() const override;
  void close(Deadline deadline, const std::function<void()>& turn) noexcept override;

  void progress() {
    turn();
    if (shm_.is_due()) [[unlikely]]
      look_at_shm();
  }
  // Lets UCX finish what is under way; starts no message.
  void turn() noexcept {
    if (!unreached_) shm_.note(worker_.progress());
  }
  std::size_t open() const noexcept { return open_; }  // messages
  // Lists an open message until it is complete, so that it is noticed if it comes by another way.
  void list(Message& message) noexcept;
  const Message* first_listed() const noexcept { return listed_.first; }
  // The longest message within a machine that UCX's double copy serves well.
  std::size_t longest_copied() const noexcept { return longest_copied_; }

  // Host memory of this rank for others, and that of others. Throw device, io.
  std::unique_ptr<UcxMemory> expose(Region memory) const { return std::make_unique<UcxMemory>(worker_, memory); }
  std::unique_ptr<UcxRemoteMemory> open_memory(std::uint32_t peer, const std::vector<std::byte>& key);
  // Begin an access to it, or wait for the puts of this rank; nullptr: it is over. Throw io.
  void* put(const UcxRemoteMemory& there, std::uint64_t address, ConstRegion data, const Call& call,
            std::uint32_t peer);
  void* get(const UcxRemoteMemory& there, std::uint64_t address, Region data, const Call& call, std::uint32_t peer);
  void* flush_puts(const Call& call);
  // True: the access, which is then no more, is over. Throws io.
  bool is_over(void*& access, const Call& call);
  void give_up_one_sided(void* access, std::uint32_t peer) noexcept;
  HeldMemory& held() noexcept { return held_; }
  // The explainer is called with the text of a UCX error before it is thrown: it may know a better reason.
  void set_explainer(std::function<void(const std::string&)> explainer) { explainer_ = std::move(explainer); }
  // Throw io, check() if the status is an error: with the explainer's text, or "UCX cannot ...".
  void check(UcxStatus status, const std::string& what) const {
    if (!status.good()) [[unlikely]]
      fail(what, status.text());
  }
  [[noreturn]] void fail(const std::string& what, const std::string& why) const;

 private:
  struct Peer {
    bool same_machine = true;
    std::vector<std::byte> address;
    std::unique_ptr<UcxEndpoint> endpoint;
  };
  // A rank of this machine to which UCX could not connect.
  struct Unreached {
    std::uint32_t rank;
    ucs_status_t problem;
  };

  void begin(Message& message, UcxRequest request) noexcept;
  UcxRequest begun(UcxRequest request, const Call& call) const;
  bool goes_by_copies(const Message& message, Awaited awaited) const;
  bool peer_reaches_memory(const Message& message) const;
  void give_up(UcxRequest request, std::uint32_t peer, bool reached, const std::shared_ptr<void>& needs) noexcept;
  void end(Message& message) noexcept;
  ucs_status_t connect(Peer& peer);
  UcxEndpoint& connected(std::uint32_t peer);
  void look_at_shm();
  void require_ucx() const {
    if (unreached_) check_connected(unreached_->rank, unreached_->problem);
  }
  void check_connected(std::uint32_t peer, ucs_status_t status) const;

  HeldMemory& held_;
  std::vector<Peer> peers_;
  UcxWorker worker_;
  Tag tag_key_ = 0;
  std::optional<Unreached> unreached_;
  const std::size_t longest_copied_;
  std::size_t open_ = 0;
  MessageList listed_;
  ShmGuard shm_;
  SentBytes sent_;  // puts too
  std::function<void(const std::string&)> explainer_;
};

// Why a connection to another rank broke.
std::string why_broken(const UcxEndpoint& endpoint);

}  // namespace waywiser
