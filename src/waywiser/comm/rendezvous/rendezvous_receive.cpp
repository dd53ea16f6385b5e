#include "waywiser/comm/rendezvous/rendezvous_receive.hpp"

#include "waywiser/base/error.hpp"
#include "waywiser/comm/message/fault_point.hpp"

namespace waywiser {

RendezvousReceive::RendezvousReceive(Session& session, const Call& call, std::uint32_t peer, Tag rts, Elements into)
    : session_(session),
      call_(call),
      peer_(peer),
      number_(rts_number(rts)),
      into_(into.region),
      pieces_(session, peer, rest_tag(true, static_cast<int>(peer), number_)) {
  reply_.bytes = into_.bytes;
  reply_.element_type = static_cast<std::uint32_t>(into.type);
  reply_.on_gpu = into_.place.is_gpu() ? 1 : 0;
  reply_.gpu_index = static_cast<std::uint32_t>(into_.place.index);
  reply_.ucx_reaches = !into_.place.is_gpu() || session_.gpus().platform().backend() == "cuda" ? 1 : 0;
  if (session.same_machine(static_cast<int>(peer)))
    listen(&source_, sizeof source_);
  else
    ask_for_it();
}

void RendezvousReceive::listen(void* what, Bytes bytes) {
  told_ = Message();
  session_.engine().receive_sized(peer_, rest_tag(true, static_cast<int>(peer_), number_), what, bytes, told_);
}

void RendezvousReceive::reply(RendezvousWay way) {
  reply_.way = way;
  session_.engine().send_sized(peer_, rest_tag(false, session_.rank(), number_), &reply_, sizeof reply_, replied_);
}

// Whether the GPU of this rank reads the bytes from the sender's memory.
bool RendezvousReceive::read() {
  if (told_.info.bytes != sizeof source_) return false;
  source_.region.gpu.back() = '\0';
  const bool alike = source_.bytes == reply_.bytes && source_.element_type == reply_.element_type;
  if (source_.readable == 0 || !alike || !into_.place.is_gpu()) return false;
  try {
    const auto theirs = session_.gpus().platform().find_gpu(source_.region.identity());
    if (!theirs)
      throw Error(ErrorKind::unavailable, "the receiver does not see GPU " + std::string(source_.region.identity()));
    GpuConnections& connections = session_.gpus().connections();
    connection_ = connections.reading_connection(*theirs, into_.place, into_.bytes);
    if (connection_ == nullptr) return false;
    opened_ = connections.open(source_.region, into_.place);
    Region there = opened_.region;
    there.place = *theirs;
    fault_point(ProtocolStep::gpu_copy);
    connection_->transport->put(into_, there, *connection_->stream);
  } catch (const Error& error) {  // then the sender puts; if it cannot either, the error has both reasons
    why_not_read_ = error.what();
    return false;
  }
  return true;
}

void RendezvousReceive::ask_for_it() {
  offer();
  listen(&verdict_, sizeof verdict_);
  reply(reply_.way);
  stage_ = Stage::waits;
}

// The destination for the sender's put, or why the sender cannot put.
void RendezvousReceive::offer() {
  const auto refuse = [this](const std::string& why) {
    why.copy(reply_.why_not_direct.data(), reply_.why_not_direct.size() - 1);
  };
  if (!session_.same_machine(static_cast<int>(peer_))) return refuse("the ranks are on two machines");
  if (!into_.place.is_gpu()) return refuse("the receiver's array is on its host");
  try {
    reply_.region = session_.gpus().peer_memory().share(into_);
    reply_.way = RendezvousWay::direct;
  } catch (const Error& error) {
    refuse(error.what());
  }
}

bool RendezvousReceive::advance() {
  Engine& engine = session_.engine();
  if (stage_ == Stage::hears) {
    if (!engine.test(told_)) return false;
    if (read())
      stage_ = Stage::reads;
    else
      ask_for_it();
  }
  if (stage_ == Stage::reads) {
    if (!connection_->stream->done()) return false;
    opened_ = {};
    reply(RendezvousWay::read);
    stage_ = Stage::done;
  }
  if (stage_ == Stage::waits) {
    if (!engine.test(replied_) || !engine.test(told_)) return false;
    take_verdict();
  }
  if (stage_ == Stage::pieces) return pieces_.receive(into_);
  return engine.test(replied_);
}

void RendezvousReceive::take_verdict() {
  if (told_.info.bytes != sizeof verdict_)
    session_.fail(ErrorKind::corrupt, text(call_) + ": the message after the announcement is malformed");
  stage_ = Stage::done;
  if (verdict_.way == RendezvousWay::direct) return;
  stage_ = Stage::pieces;
  verdict_.why_not_direct.back() = '\0';
  session_.gpus().note_staged(
      static_cast<int>(peer_),
      with_second_reason(verdict_.why_not_direct.data(), "the receiver cannot read it", why_not_read_));
  if (verdict_.network_path != no_network_path) follow(verdict_.network_path);
}

std::string RendezvousReceive::progress_text() const {
  return stage_ == Stage::reads ? "the kernel that reads it has not ended" : pieces_.progress_text("arrived");
}

void RendezvousReceive::follow(std::uint32_t way) {
  Engine& engine = session_.engine();
  if (way >= engine.ways().all().size() || !engine.why_no_way(way, peer_, false).empty())
    session_.fail(ErrorKind::corrupt, text(call_) + ": the message after the announcement names an unknown protocol");
  pieces_.go_by(way);
}

RendezvousReceive::~RendezvousReceive() {
  if (replied_.is_open() || told_.is_open() || stage_ == Stage::reads || pieces_.is_open()) session_.give_up(*this);
}

// Once the sender may know the destination, it may be writing there: UCX may have delivered the reply before this end
// knows. A reply that still waits for room in a lane has not been sent.
void RendezvousReceive::abandon() noexcept {
  HeldMemory& held = session_.engine().held();
  if (stage_ == Stage::waits && reply_.way == RendezvousWay::direct && replied_.state != Message::State::waits)
    held.add(peer_, [] { return false; });
  if (stage_ == Stage::reads)
    held.add_own(peer_, [&stream = *connection_->stream, opened = std::move(opened_)] { return ended(stream); });
  for (Message* message : {&replied_, &told_}) session_.engine().cancel(*message);
  pieces_.abandon();
  stage_ = Stage::done;
}

}  // namespace waywiser
