#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "waywiser/collective/group_core.hpp"
#include "waywiser/comm/elements.hpp"
#include "waywiser/group/future.hpp"
#include "waywiser/group/prepared.hpp"
#include "waywiser/group/wildcards.hpp"

namespace waywiser {

class JointActivity;

// The messages of one group that are not on streams. A label is a user's tag, or a number that no user's tag has.
class GroupMessages {
 public:
  explicit GroupMessages(GroupCore& core) : core_(core), session_(core.session()) {}

  void send(const ConstElements& data, int to, int label);
  void recv(const Elements& data, int from, int label);
  void sendrecv(ConstElements data, int to, Elements into, int from, int label);
  void exchange(std::span<const Exchange> neighbors);
  Future begin_send(const ConstElements& data, int to, int label) { return future_of(start_send(data, to, label)); }
  // One message of `runs`, at least one, all of one type and in one place.
  Future begin_send_runs(const std::vector<ConstElements>& runs, int to, int label);
  Future begin_recv(const Elements& data, int from, int label) { return future_of(start_recv(data, from, label)); }
  // Takes any_source and any_tag. With a status the message may be shorter than `data`.
  Future begin_recv(Elements data, Envelope wanted, MessageStatus* status) {
    return future_of(start_recv(data, wanted, status));
  }
  // Without `patience` it waits as every call.
  std::optional<MessageStatus> probe(Envelope wanted, std::optional<Seconds> patience);
  Future begin_sendrecv(ConstElements data, int to, Elements into, int from, int label);
  Future begin_exchange(std::span<const Exchange> neighbors);

  void check_exchange(std::span<const Exchange> neighbors) const;
  void check_neighbor(int rank, int give_tag, int take_tag) const;

 private:
  // nullptr: it is complete.
  std::shared_ptr<Activity> start_send(const ConstElements& data, int to, int label);
  std::shared_ptr<Activity> start_recv(const Elements& data, int from, int label);
  std::shared_ptr<Activity> start_recv(Elements data, Envelope wanted, MessageStatus* status);
  std::shared_ptr<Activity> started(std::shared_ptr<Activity> operation);
  std::shared_ptr<JointActivity> start_exchange(std::span<const Exchange> neighbors);
  Future begun(std::shared_ptr<JointActivity> parts);
  Future future_of(std::shared_ptr<Activity> operation);
  void check_sendrecv(ConstElements data, int to, Elements into, int from, bool copies) const;
  bool send_at_once(const Call& call, const ConstElements& data, int label);
  std::optional<unsigned> announcement_number_for(const Call& call, bool waits);
  // Whether a receive may have to wait until an earlier one has got its message.
  bool has_wildcards() const noexcept { return wildcards_ && !wildcards_->empty(); }
  Wildcards& wildcards();
  void check_envelope(Envelope wanted, const char* what) const;
  const Members& members() const noexcept { return core_.members(); }

  GroupCore& core_;
  Session& session_;
  std::shared_ptr<Wildcards> wildcards_;  // nullptr until the first is needed
};

}  // namespace waywiser
