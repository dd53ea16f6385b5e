#include "waywiser/collective/proxy/proxied_message.hpp"

#include <utility>

namespace waywiser {

ProxiedSend::ProxiedSend(Session& session, std::shared_ptr<const Members> members, const Call& call, ConstElements data)
    : members_(std::move(members)),
      call_(call),
      data_(data),
      transfer_(session, call_, members_->rank, data.region.bytes) {}

void ProxiedSend::take(StreamStaging& staging) {
  const ConstRegion& there = data_.region;
  staged_.emplace(staging, std::vector{Region{const_cast<std::byte*>(there.data), there.bytes, there.place}});
}

bool ProxiedSend::advance() {
  if (!std::exchange(posted_, true)) transfer_.send(*members_, call_.peer, stream_label, staged_->on_host().data);
  return transfer_.advance();
}

void ProxiedSend::abandon() noexcept {
  if (posted_) transfer_.abandon();
}

ProxiedReceive::ProxiedReceive(Session& session, std::shared_ptr<const Members> members, const Call& call,
                               Elements into)
    : members_(std::move(members)), call_(call), into_(into), transfer_(session, call_, call.peer, into.region.bytes) {}

void ProxiedReceive::take(StreamStaging& staging) { staged_.emplace(staging, std::vector{into_.region}); }

bool ProxiedReceive::advance() {
  if (!std::exchange(posted_, true)) {
    const Region there = staged_->on_host();
    transfer_.receive(*members_, stream_label, there.data, {there, into_.type});
  }
  return transfer_.advance();
}

std::string ProxiedReceive::progress_text() const {
  return transfer_.progress_text() + ", waiting for " + members_->text_of(call_.peer);
}

void ProxiedReceive::abandon() noexcept {
  if (posted_) transfer_.abandon();
}

}  // namespace waywiser
