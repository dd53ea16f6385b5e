#include "waywiser/collective/proxy/proxied_message.hpp"

#include "waywiser/comm/rendezvous/gpu_receive.hpp"
#include "waywiser/comm/rendezvous/rendezvous_send.hpp"

namespace waywiser {

ProxiedSend::ProxiedSend(Session& session, std::shared_ptr<const Members> members, const Call& call, ConstElements data)
    : session_(session), members_(std::move(members)), call_(call), data_(data) {}

// False: as many messages out of this rank's GPUs as can be are under way.
bool ProxiedSend::begin() {
  const std::uint32_t peer = members_->peer(call_.peer);
  const ConstRegion& there = data_.region;
  const bool on_gpu = there.place.is_gpu() && there.bytes != 0;
  if (on_gpu && (session_.same_machine(static_cast<int>(peer)) || there.bytes > longest_short)) {
    const auto number = session_.take_rts_number();
    if (!number) return false;
    rendezvous_ = std::make_unique<RendezvousSend>(session_, *members_, call_, stream_label, data_, *number);
    return true;
  }
  copy_ = std::make_unique<StagedCopies>(
      session_, std::vector{Region{const_cast<std::byte*>(there.data), there.bytes, there.place}});
  copy_->fetch();
  return true;
}

bool ProxiedSend::advance_copy() {
  if (!transfer_) {
    if (!copy_->done()) return false;
    transfer_ = std::make_unique<Transfer>(session_, call_, members_->rank, data_.region.bytes);
    transfer_->send(*members_, call_.peer, stream_label, copy_->on_host().data);
  }
  return transfer_->advance();
}

bool ProxiedSend::advance() {
  if (!rendezvous_ && !copy_ && !begin()) return false;
  return rendezvous_ ? rendezvous_->advance() : advance_copy();
}

std::string ProxiedSend::progress_text() const {
  if (rendezvous_) return rendezvous_->progress_text();
  return transfer_ ? transfer_->progress_text() : "its copy to the host has not ended";
}

void ProxiedSend::abandon() noexcept {
  if (rendezvous_) rendezvous_->abandon();
  if (copy_) copy_->abandon();
  if (transfer_) transfer_->abandon();
}

ProxiedReceive::ProxiedReceive(Session& session, std::shared_ptr<const Members> members, const Call& call,
                               Elements into)
    : session_(session), members_(std::move(members)), call_(call), into_(into) {}

bool ProxiedReceive::advance() {
  if (!message_) {
    if (into_.region.place.is_gpu() && into_.region.bytes != 0) {
      message_ = std::make_unique<GpuReceive>(session_, *members_, call_, stream_label, into_);
    } else {
      auto transfer = std::make_unique<Transfer>(session_, call_, call_.peer, into_.region.bytes);
      transfer->receive(*members_, stream_label, into_.region.data, into_);
      message_ = std::move(transfer);
    }
  }
  return message_->advance();
}

std::string ProxiedReceive::progress_text() const {
  const std::string from = "waiting for rank " + std::to_string(call_.peer);
  return message_ ? message_->progress_text() + ", " + from : from;
}

void ProxiedReceive::abandon() noexcept {
  if (message_) message_->abandon();
}

}  // namespace waywiser
