#include "waywiser/comm/rendezvous/gpu_receive.hpp"

#include <utility>

#include "waywiser/policy/defaults.hpp"

namespace waywiser {
namespace {

Memory landing(RankGpus& gpus, Region into, bool pinned) {
  Platform& platform = gpus.platform();
  if (pinned) return gpus.connections().pool().take(into.place.index, into.bytes);
  return platform.allocate(platform.nearest_host(into.place.index), into.bytes, Allocation::pageable);
}

bool may_pin(RankGpus& gpus, int sender, Bytes bytes) {
  return bytes <= defaults::pinned_unasked || (gpus.host_sends(sender) && gpus.connections().pool().keeps(bytes));
}

}  // namespace

GpuReceive::GpuReceive(Session& session, const Members& members, const Call& call, int label, Elements into,
                       const MessageHead* head)
    : session_(session),
      into_(into.region),
      sender_(static_cast<int>(members.peer(call.peer))),
      pinned_(may_pin(session.gpus(), sender_, into_.bytes)),
      landing_(landing(session.gpus(), into_, pinned_)),
      transfer_(session, call, call.peer, into_.bytes) {
  transfer_.receive(members, label, landing_.region().data, into, head);
}

GpuReceive::~GpuReceive() {
  if (pinned_) session_.gpus().connections().pool().give_back(std::move(landing_));
}

void GpuReceive::abandon() noexcept {
  transfer_.abandon();
  if (copied_)
    session_.engine().held().add_own(static_cast<std::uint32_t>(session_.rank()), [this] { return ended(*copied_); });
}

bool GpuReceive::advance() {
  if (copied_) return copied_->done();
  if (!transfer_.advance()) return false;
  if (into_.bytes > defaults::pinned_unasked) session_.gpus().note_sender(sender_, !transfer_.came_by_rendezvous());
  if (transfer_.came_by_rendezvous()) return true;
  Stream& stream = session_.gpus().connections().stream(into_.place);
  copied_ = session_.gpus().platform().create_event(into_.place);
  stream.copy(into_, landing_.region().slice(0, into_.bytes));
  stream.record(*copied_);
  return copied_->done();
}

}  // namespace waywiser
