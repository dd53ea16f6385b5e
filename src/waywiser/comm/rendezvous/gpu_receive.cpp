#include "waywiser/comm/rendezvous/gpu_receive.hpp"

#include <utility>

namespace waywiser {

GpuReceive::GpuReceive(Session& session, const Members& members, const Call& call, int label, Elements into,
                       const MessageHead* head)
    : session_(session),
      into_(into.region),
      landing_(session.gpus().connections().pool().take(into_.place.index, into_.bytes)),
      transfer_(session, call, call.peer, into_.bytes) {
  transfer_.receive(members, label, landing_.region().data, into, head);
}

GpuReceive::~GpuReceive() { session_.gpus().connections().pool().give_back(std::move(landing_)); }

void GpuReceive::abandon() noexcept {
  transfer_.abandon();
  if (copied_)
    session_.engine().held().add_own(static_cast<std::uint32_t>(session_.rank()), [this] { return ended(*copied_); });
}

bool GpuReceive::advance() {
  if (copied_) return copied_->done();
  if (!transfer_.advance()) return false;
  if (transfer_.came_by_rendezvous()) return true;
  Stream& stream = session_.gpus().connections().stream(into_.place);
  copied_ = session_.gpus().platform().create_event(into_.place);
  stream.copy(into_, landing_.region().slice(0, into_.bytes));
  stream.record(*copied_);
  return copied_->done();
}

}  // namespace waywiser
