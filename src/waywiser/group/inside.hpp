#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "waywiser/comm/message/members.hpp"
#include "waywiser/comm/session/session.hpp"
#include "waywiser/group/group.hpp"

// What other folders of this library need of a group beside its calls.
namespace waywiser {

class Chooser;
class GroupCore;

// Keeps other threads out of the group between the calls of one. Throws invalid_input if one is in a call.
void hold(const Group& group);
void let_go(const Group& group) noexcept;
class [[nodiscard]] GroupHold {
 public:
  explicit GroupHold(const Group& group);
  GroupHold(const GroupHold&) = delete;
  GroupHold& operator=(const GroupHold&) = delete;
  ~GroupHold();

 private:
  GroupCore& core_;
};

// Nobody uses this group any more: closes as the destructor of the last Group does.
void leave_to_end(Group& group) noexcept;

// For operations that wait, fail and progress as those of the group do.
Session& session_of(const Group& group);
const std::shared_ptr<const Members>& members_of(const Group& group);
// The call that this rank is in.
Call current_call(const Group& group);
// nullptr: the job has no plan.
const Chooser* plan_of(const Group& group);
// Whether that rank of the group is on this rank's machine, as the job sees it; otherwise why not.
bool same_machine(const Group& group, int rank);
std::string why_apart(const Group& group, int rank);
// Its number in the system of its machine.
std::uint64_t process_of(const Group& group, int rank);

// How a message to another rank goes out of this rank's memory at `mine`. Host memory: see Engine::way_to(). Out of a
// GPU, once one has gone: "direct", into where it belongs, or "staged", for the reason of why_staged().
std::string message_way(const Group& group, int rank, Place mine, Bytes bytes);

struct ElementRun {
  std::size_t first = 0, count = 0;
};
// Begins to send runs of an array as one message, for which the receiver has one array. Out of a GPU's memory they go
// straight from where they lie to where they belong, if a copy reaches it; else they are gathered first. `data` must
// live until the future is done. Throws as Group::send.
Future send_runs(const Group& group, const ConstElements& data, std::span<const ElementRun> runs, int to, int label);

// Messages between the ranks of a group that makes no other calls. Between two ranks those with one label arrive in
// order. A message stays at its place until it is complete or cancelled.
class LabelledMessages {
 public:
  // `kind`: what other ranks hear that this one does.
  LabelledMessages(const Group& group, CallKind kind);

  Session& session() const noexcept { return session_; }
  const Call& call() const noexcept { return call_; }
  void send(int to, unsigned label, const void* data, Bytes bytes, Message& message) const {
    message = {};
    session_.engine().send_sized(members_->peer(to), tag(members_->rank, label), data, bytes, message);
  }
  void receive(int from, unsigned label, void* into, Bytes bytes, Message& message) const {
    message = {};
    session_.engine().receive_sized(members_->peer(from), tag(from, label), into, bytes, message);
  }
  bool is_sent(Message& message) const { return session_.engine().test(message); }
  // Fails the group if the message is not as it should be.
  bool has_come(int from, unsigned label, Bytes bytes, Message& message) const {
    if (!session_.engine().test(message)) return false;
    if (const auto why = unlike(message.info, tag(from, label), bytes, from)) session_.fail(ErrorKind::corrupt, *why);
    return true;
  }
  void cancel(Message& message) const noexcept {
    if (message.is_open()) session_.engine().cancel(message);
  }

 private:
  Tag tag(int source, unsigned label) const { return members_->tag(source, label, call_); }

  Session& session_;
  const std::shared_ptr<const Members> members_;
  Call call_;
};

}  // namespace waywiser
