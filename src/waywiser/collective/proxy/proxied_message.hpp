#pragma once

#include <memory>
#include <optional>

#include "waywiser/collective/proxy/proxy_part.hpp"
#include "waywiser/collective/proxy/staged_copies.hpp"
#include "waywiser/comm/elements.hpp"
#include "waywiser/comm/session/members.hpp"
#include "waywiser/comm/session/transfer.hpp"

namespace waywiser {

// Messages on streams have no tag, and no message of a user has this label. Between two ranks they arrive in the order
// of their calls.
inline constexpr int stream_label = largest_label;

// A message out of an array to call.peer: short ones to other machines by way of the host, whose copy lets the stream
// go on; all others as messages of GPU memory are sent (comm/rendezvous).
class ProxiedSend : public ProxyPart {
 public:
  ProxiedSend(Session& session, std::shared_ptr<const Members> members, const Call& call, ConstElements data);

  bool advance() override;
  bool lets_stream_go() const override { return transfer_ != nullptr; }
  bool has_posted() const override { return rendezvous_ || transfer_; }
  const Call& call() const override { return call_; }
  std::string progress_text() const override;
  void abandon() noexcept override;

 private:
  bool begin();
  bool advance_copy();

  Session& session_;
  const std::shared_ptr<const Members> members_;
  const Call call_;
  const ConstElements data_;
  std::unique_ptr<Activity> rendezvous_;
  std::unique_ptr<StagedCopies> copy_;
  std::unique_ptr<Transfer> transfer_;
};

// A message from call.peer into an array.
class ProxiedReceive : public ProxyPart {
 public:
  ProxiedReceive(Session& session, std::shared_ptr<const Members> members, const Call& call, Elements into);

  bool advance() override;
  bool lets_stream_go() const override { return false; }
  const Call& call() const override { return call_; }
  std::string progress_text() const override;
  void abandon() noexcept override;

 private:
  Session& session_;
  const std::shared_ptr<const Members> members_;
  const Call call_;
  const Elements into_;
  std::unique_ptr<Activity> message_;
};

}  // namespace waywiser
