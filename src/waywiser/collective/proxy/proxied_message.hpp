#pragma once

#include <memory>
#include <optional>

#include "waywiser/collective/proxy/proxy_part.hpp"
#include "waywiser/collective/proxy/stream_staging.hpp"
#include "waywiser/comm/elements.hpp"
#include "waywiser/comm/message/members.hpp"
#include "waywiser/comm/rendezvous/transfer.hpp"
#include "waywiser/comm/shared_memory/lane.hpp"

namespace waywiser {

// Messages on streams have no tag; no user message has this label. Between two ranks they arrive in the order of their
// calls.
inline constexpr int stream_label = largest_label;

// A message from an array to call.peer. The stream continues when a short message has been copied to the host; for a
// long one, when the receiver has it.
class ProxiedSend : public ProxyPart {
 public:
  ProxiedSend(Session& session, std::shared_ptr<const Members> members, const Call& call, ConstElements data);

  void take(StreamStaging& staging) override;
  void fetch(Stream& stream) override { staged_->fetch(stream); }
  bool holds_stream() const override { return data_.region.bytes > longest_short; }
  void put_back(Stream&) override {}
  bool advance() override;
  const Call& call() const override { return call_; }
  std::string progress_text() const override { return transfer_.progress_text(); }
  void abandon() noexcept override;

 private:
  const std::shared_ptr<const Members> members_;
  const Call call_;
  const ConstElements data_;
  std::optional<StagedPieces> staged_;
  Transfer transfer_;
  bool posted_ = false;
};

// A message from call.peer into an array.
class ProxiedReceive : public ProxyPart {
 public:
  ProxiedReceive(Session& session, std::shared_ptr<const Members> members, const Call& call, Elements into);

  void take(StreamStaging& staging) override;
  void fetch(Stream&) override {}
  std::vector<Region> outputs() const override { return {into_.region}; }
  void put_back(Stream& stream) override { staged_->put_back(stream); }
  bool advance() override;
  const Call& call() const override { return call_; }
  std::string progress_text() const override;
  void abandon() noexcept override;

 private:
  const std::shared_ptr<const Members> members_;
  const Call call_;
  const Elements into_;
  std::optional<StagedPieces> staged_;
  Transfer transfer_;
  bool posted_ = false;
};

}  // namespace waywiser
