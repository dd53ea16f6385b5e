#pragma once

#include "waywiser/comm/elements.hpp"
#include "waywiser/comm/message/members.hpp"
#include "waywiser/comm/rendezvous/rendezvous_receive.hpp"
#include "waywiser/comm/session/session.hpp"

namespace waywiser {

// One message between host memories, sent or received. An arriving RTS of a message out of a GPU starts a rendezvous.
class Transfer : public Activity {
 public:
  Transfer(Session& session, const Call& call, int source, std::size_t bytes)
      : session_(session), call_(call), source_(source), bytes_(bytes) {}
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;
  ~Transfer() override {
    if (message_.is_open()) [[unlikely]]
      session_.give_up(*this);
  }

  void send(const Members& members, int to, int tag, const std::byte* data, Awaited awaited = Awaited::later) {
    session_.engine().send_sized(members.peer(to), members.tag(members.rank, static_cast<unsigned>(tag), call_), data,
                                 bytes_, message_, awaited);
  }
  // A rendezvous writes to `into`, any other message to `data`. `head`: the header that has been received.
  void receive(const Members& members, int tag, std::byte* data, Elements into, const MessageHead* head = nullptr) {
    into_ = into;
    peer_ = members.peer(source_);
    expected_ = members.tag(source_, static_cast<unsigned>(tag), as_send());
    if (head != nullptr) return session_.engine().receive_headed(peer_, expected_, *head, data, bytes_, message_);
    session_.engine().receive_sized(peer_, expected_, data, bytes_, message_);
  }

  bool advance() override {
    if (rest_) return rest_->advance();
    if (!session_.engine().test(message_)) return false;
    if (!message_.receiving) return true;
    if (is_rts(message_.info.tag)) {
      rest_ = std::make_unique<RendezvousReceive>(session_, call_, peer_, message_.info.tag, into_);
      return rest_->advance();
    }
    if (const auto why = unlike(message_.info, expected_, bytes_, source_))
      session_.fail(ErrorKind::invalid_input, text(call_) + ": " + *why);
    return true;
  }
  bool came_by_rendezvous() const noexcept { return rest_ != nullptr; }
  const Call& call() const override { return call_; }
  std::string progress_text() const override {
    if (rest_) return rest_->progress_text();
    return message_.receiving ? "0 of " + std::to_string(bytes_) + " bytes arrived"
                              : std::to_string(bytes_) + " bytes have not been taken";
  }
  // UCX and the mailboxes move it without advance().
  bool needs_turns() const noexcept override { return message_.receiving && session_.gpus().any_sends(); }
  void abandon() noexcept override {
    session_.engine().cancel(message_);
    if (rest_) rest_->abandon();
  }

 private:
  // The matching call of the sender.
  Call as_send() const {
    Call call = call_;
    call.kind = CallKind::send;
    return call;
  }

  Session& session_;
  const Call call_;
  const int source_;
  const std::size_t bytes_;
  Tag expected_ = 0;
  Message message_;
  Elements into_;
  std::uint32_t peer_ = 0;
  std::unique_ptr<RendezvousReceive> rest_;
};

}  // namespace waywiser
