#include "waywiser/comm/announced_receive.hpp"

#include "waywiser/base/error.hpp"

namespace waywiser {

AnnouncedReceive::AnnouncedReceive(Session& session, const Call& call, std::uint32_t peer, ucp_tag_t announcement,
                                   Elements into)
    : session_(session),
      call_(call),
      peer_(peer),
      number_(announcement_number(announcement)),
      into_(into.region),
      pieces_(session, peer, rest_tag(true, static_cast<int>(peer), number_)) {
  reply_.bytes = into_.bytes;
  reply_.element_type = static_cast<std::uint32_t>(into.type);
  reply_.on_gpu = into_.place.is_gpu() ? 1 : 0;
  reply_.ucx_reaches = !into_.place.is_gpu() || session_.platform().backend() == "cuda" ? 1 : 0;
  offer();
  session.engine().receive(rest_tag(true, static_cast<int>(peer), number_), matched_bits, &verdict_, sizeof verdict_,
                           told_);
  session.engine().send(peer_, rest_tag(false, session.rank(), number_), &reply_, sizeof reply_, replied_);
}

// The place where the sender can put the bytes, or why it cannot.
void AnnouncedReceive::offer() {
  const auto refuse = [this](const std::string& why) {
    why.copy(reply_.why_not_direct.data(), reply_.why_not_direct.size() - 1);
  };
  if (!session_.same_machine(static_cast<int>(peer_))) return refuse("the ranks are on two machines");
  if (!into_.place.is_gpu()) return refuse("the receiver's array is on its host");
  try {
    reply_.region = session_.platform().share(into_);
    reply_.way = Way::direct;
  } catch (const Error& error) {
    refuse(error.what());
  }
}

bool AnnouncedReceive::advance() {
  if (in_pieces_) return pieces_.receive(into_);
  if (!session_.engine().test(replied_) || !session_.engine().test(told_)) return false;
  if (told_.info.length != sizeof verdict_)
    session_.fail(ErrorKind::corrupt, text(call_) + ": what follows the announcement is not understood");
  if (verdict_.way == Way::direct) return true;
  verdict_.why_not_direct.back() = '\0';
  session_.note_staged(static_cast<int>(peer_), verdict_.why_not_direct.data());
  in_pieces_ = true;
  if (verdict_.network_way != no_network_way) follow(verdict_.network_way);
  return pieces_.receive(into_);
}

void AnnouncedReceive::follow(std::uint32_t way) {
  Engine& engine = session_.engine();
  if (way >= engine.ways().all().size() || !engine.why_no_way(way, peer_, false).empty())
    session_.fail(ErrorKind::corrupt, text(call_) + ": what follows the announcement names no way that is known here");
  pieces_.go_by(way);
}

void AnnouncedReceive::abandon() noexcept {
  for (Message* message : {&replied_, &told_}) session_.engine().cancel(*message);
  pieces_.abandon();
}

}  // namespace waywiser
