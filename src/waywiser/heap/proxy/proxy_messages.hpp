#pragma once

#include "waywiser/comm/session/members.hpp"
#include "waywiser/comm/session/session.hpp"
#include "waywiser/heap/device/proxy_ring.hpp"

namespace waywiser {

// What the owner of the memory answers to accesses: all up to this one are complete.
struct ProxyAnswer {
  std::uint64_t number = 0;  // of the last one
  std::uint64_t result = 0;  // of the last one, as is what it gets, which follows
};

// The messages between the proxies of a heap: what a rank asks for, and what it is answered, each with bytes that
// follow. Between two ranks those of one kind arrive in the order of their calls.
class ProxyMessages {
 public:
  enum class Kind { request, piece, answer, answer_piece };

  ProxyMessages(Session& session, std::shared_ptr<const Members> members)
      : session_(session), members_(std::move(members)) {
    call_.kind = CallKind::put;
    call_.group = members_->key();
  }

  Session& session() const noexcept { return session_; }
  const Members& members() const noexcept { return *members_; }
  const Call& call() const noexcept { return call_; }
  void send(int to, Kind kind, const void* data, Bytes bytes, Message& message) const {
    message = {};
    session_.engine().send_sized(members_->peer(to), tag(members_->rank, kind), data, bytes, message);
  }
  void receive(int from, Kind kind, void* into, Bytes bytes, Message& message) const {
    message = {};
    session_.engine().receive_sized(members_->peer(from), tag(from, kind), into, bytes, message);
  }
  bool is_sent(Message& message) const { return session_.engine().test(message); }
  // Fails the group if the message is not as it should be.
  bool has_come(int from, Kind kind, Bytes bytes, Message& message) const {
    if (!session_.engine().test(message)) return false;
    if (const auto why = unlike(message.info, tag(from, kind), bytes, from)) session_.fail(ErrorKind::corrupt, *why);
    return true;
  }
  void cancel(Message& message) const noexcept {
    if (message.is_open()) session_.engine().cancel(message);
  }

 private:
  ucp_tag_t tag(int source, Kind kind) const { return members_->tag(source, static_cast<std::uint64_t>(kind), call_); }

  Session& session_;
  const std::shared_ptr<const Members> members_;
  Call call_;
};

}  // namespace waywiser
