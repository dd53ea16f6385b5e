#include "waywiser/group/named_receive.hpp"

#include "waywiser/comm/rendezvous/gpu_receive.hpp"
#include "waywiser/comm/session/lane_execution.hpp"
#include "waywiser/comm/windows/host_staging.hpp"

namespace waywiser {
namespace {

Tag tag_of(const Members& members, const Call& call, int label) {
  Call theirs = call;
  theirs.kind = CallKind::send;
  return members.tag(call.peer, static_cast<unsigned>(label), theirs);
}

// Fails the group if it is not what is wanted, nor the announcement of it.
void check(Session& session, const Received& came, Tag wanted, const Call& call, const Elements& data) {
  if ((came.tag == wanted && came.bytes == data.region.bytes) || is_rts(came.tag)) return;
  if (const auto why = unlike(came, wanted, data.region.bytes, call.peer))
    session.fail(ErrorKind::invalid_input, text(call) + ": " + *why);
}

}  // namespace

std::shared_ptr<Activity> named_receive(Session& session, const Members& members, const Call& call,
                                        const Elements& data, int label, const MessageHead* head) {
  if (is_staged(data)) return std::make_shared<GpuReceive>(session, members, call, label, data, head);
  const std::uint32_t peer = members.peer(call.peer);
  const Tag tag = tag_of(members, call, label);
  if (const auto came = session.engine().receive_at_once(peer, tag, data.region.data, data.region.bytes)) {
    check(session, *came, tag, call, data);
    if (!is_rts(came->tag)) return {};
    return std::make_shared<RendezvousReceive>(session, call, peer, came->tag, data);
  }
  auto transfer = std::make_shared<Transfer>(session, call, call.peer, data.region.bytes);
  transfer->receive(members, label, data.region.data, data, head);
  return transfer;
}

void receive_named(Session& session, const Members& members, const Call& call, const Elements& data, int label) {
  const std::uint32_t peer = members.peer(call.peer);
  const Tag tag = tag_of(members, call, label);
  if (const auto came = receive_soon(session, peer, tag, data.region.data, data.region.bytes)) {
    check(session, *came, tag, call, data);
    if (!is_rts(came->tag)) return;
    RendezvousReceive rest(session, call, peer, came->tag, data);
    return session.wait(rest);
  }
  Transfer transfer(session, call, call.peer, data.region.bytes);
  transfer.receive(members, label, data.region.data, data);
  session.wait(transfer);
}

}  // namespace waywiser
