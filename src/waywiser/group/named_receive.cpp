#include "waywiser/group/named_receive.hpp"

#include "waywiser/comm/rendezvous/gpu_receive.hpp"
#include "waywiser/comm/windows/host_staging.hpp"

namespace waywiser {
namespace {

std::optional<Received> receive_at_once(Session& session, const Members& members, const Call& call, Elements data,
                                        int label) {
  Call theirs = call;
  theirs.kind = CallKind::send;
  const Tag tag = members.tag(call.peer, static_cast<unsigned>(label), theirs);
  const auto came = session.engine().receive_at_once(members.peer(call.peer), tag, data.region.data, data.region.bytes);
  if (!came || is_rts(came->tag)) return came;
  if (const auto why = unlike(*came, tag, data.region.bytes, call.peer))
    session.fail(ErrorKind::invalid_input, text(call) + ": " + *why);
  return came;
}

}  // namespace

std::shared_ptr<Activity> named_receive(Session& session, const Members& members, const Call& call, Elements data,
                                        int label, const MessageHead* head) {
  if (is_staged(data)) return std::make_shared<GpuReceive>(session, members, call, label, data, head);
  if (const auto came = receive_at_once(session, members, call, data, label)) {
    if (!is_rts(came->tag)) return {};
    return std::make_shared<RendezvousReceive>(session, call, members.peer(call.peer), came->tag, data);
  }
  auto transfer = std::make_shared<Transfer>(session, call, call.peer, data.region.bytes);
  transfer->receive(members, label, data.region.data, data, head);
  return transfer;
}

}  // namespace waywiser
