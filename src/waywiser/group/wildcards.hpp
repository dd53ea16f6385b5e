#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "waywiser/comm/message/members.hpp"
#include "waywiser/comm/rendezvous/transfer.hpp"
#include "waywiser/comm/session/session.hpp"
#include "waywiser/group/future.hpp"

namespace waywiser {

class WildcardReceive;

// What a receive matches: any_source and any_tag match all sources and all tags of users.
struct Envelope {
  int source = any_source;
  int tag = any_tag;
};

// Receives of one group that take any source, any tag or any length, and all receives after them, until each has got
// its message. As in MPI a message goes to the first receive that it matches, in the order of the calls. Neither UCX
// nor a mailbox knows of these receives before their messages have come, so all others are as fast as without them.
class Wildcards : public std::enable_shared_from_this<Wildcards> {
 public:
  Wildcards(Session& session, std::shared_ptr<const Members> members)
      : session_(session), members_(std::move(members)) {}

  bool empty() const noexcept { return unmatched_.empty(); }
  // A receive of messages of at most the length of `into`, with a status, else of exactly that length.
  std::shared_ptr<WildcardReceive> add(const Call& call, Elements into, Envelope wanted, MessageStatus* status);
  void remove(const WildcardReceive& receive) noexcept { std::erase(unmatched_, &receive); }
  // Gives the messages that have come to the receives.
  void match();
  // The first message that has come and that no receive takes.
  std::optional<Received> find(Envelope wanted);
  // Throws unavailable for a message whose length its sender has not said yet, and what Session::fail throws.
  MessageStatus status_of(const Received& found, const Call& call) const;

  Session& session() const noexcept { return session_; }
  const Members& members() const noexcept { return *members_; }

 private:
  std::optional<Received> probe(Envelope wanted);
  bool give_to_first(const Received& found, const WildcardReceive* last);

  Session& session_;
  const std::shared_ptr<const Members> members_;
  std::vector<WildcardReceive*> unmatched_;  // in the order of the calls
};

class WildcardReceive final : public Activity {
 public:
  WildcardReceive(std::shared_ptr<Wildcards> all, const Call& call, Elements into, Envelope wanted,
                  MessageStatus* status);
  WildcardReceive(const WildcardReceive&) = delete;
  WildcardReceive& operator=(const WildcardReceive&) = delete;
  ~WildcardReceive() override;

  Envelope wanted() const noexcept { return wanted_; }
  // Whether it is an ordinary receive, which only had to wait for its turn.
  bool is_named() const noexcept;
  void begin_named();
  void take(const Received& found);

  bool advance() override;
  const Call& call() const override { return call_; }
  std::string progress_text() const override;
  void abandon() noexcept override;

 private:
  enum class Stage { unmatched, head, receives, done };

  void begin(Bytes bytes, const MessageHead* head = nullptr);

  const std::shared_ptr<Wildcards> all_;
  Call call_;
  Elements into_;
  Envelope wanted_;  // of the message, when it is known
  MessageStatus* status_;
  Stage stage_ = Stage::unmatched;
  MessageHead head_{};
  Message header_;
  std::shared_ptr<Activity> rest_;  // nullptr: complete
};

}  // namespace waywiser
