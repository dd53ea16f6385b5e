#include "waywiser/comm/rendezvous/rendezvous_send.hpp"

#include <utility>

#include "waywiser/base/error.hpp"
#include "waywiser/comm/message/fault_point.hpp"
#include "waywiser/policy/defaults.hpp"

namespace waywiser {
namespace {

// For work after which it is too late for another way.
template <typename Work>
void do_or_fail(Session& session, Work work) {
  try {
    work();
  } catch (const Error& error) {
    session.fail(error.kind(), error.what());
  }
}

}  // namespace

RendezvousSend::RendezvousSend(Session& session, const Members& members, const Call& call, int label, ConstElements all,
                               std::vector<ConstRegion> runs, unsigned number)
    : session_(session),
      call_(call),
      data_(all),
      runs_(std::move(runs)),
      peer_(members.peer(call.peer)),
      number_(number),
      pieces_(session, peer_, rest_tag(true, session.rank(), number_)) {
  fault_point(ProtocolStep::announcement);
  const Tag tag = members.tag(members.rank, static_cast<unsigned>(label), call);
  session.engine().receive_sized(peer_, rest_tag(false, static_cast<int>(peer_), number_), &reply_, sizeof reply_,
                                 replied_);
  session.engine().send_sized(peer_, rts_tag(tag, number_), nullptr, 0, rts_);
  if (session.same_machine(static_cast<int>(peer_))) offer();
}

void RendezvousSend::offer() {
  source_.element_type = static_cast<std::uint32_t>(data_.type);
  source_.bytes = data_.region.bytes;
  // For larger messages the receiver's kernel is slower than a copy engine by more than the time of a reply.
  if (runs_.size() == 1 && source_.bytes <= defaults::read_by_receiver) try {
      source_.region = session_.gpus().peer_memory().share(data_.region);
      source_.readable = 1;
    } catch (const Error& error) {  // then the receiver replies with the destination
      why_not_shared_ = error.what();
    }
  session_.engine().send_sized(peer_, rest_tag(true, session_.rank(), number_), &source_, sizeof source_, offered_);
}

bool RendezvousSend::advance() {
  if (stage_ == Stage::waits) {
    Engine& engine = session_.engine();
    if (!engine.test(rts_) || !engine.test(offered_) || !engine.test(replied_)) return false;
    read_reply();
  }
  if (stage_ == Stage::copies) {
    if (!has_copied()) return false;
    for (const GpuConnections::Connection* way : {connection_, beside_}) {
      if (way == nullptr) continue;
      way->transport->finish(*way->stream, Deadline::in(session_.timeout()));
      way->transport->rest();
    }
    opened_ = {};
    tell(RendezvousWay::direct, "");
  }
  if (stage_ == Stage::gathers && gathered_->stream->done()) stage_ = Stage::pieces;
  if (stage_ == Stage::pieces && session_.engine().test(told_) && pieces_.send(data_.region)) end();
  if (stage_ == Stage::tells && session_.engine().test(told_)) end();
  return stage_ == Stage::done;
}

void RendezvousSend::read_reply() {
  check_reply();
  reply_.why_not_direct.back() = '\0';
  reply_.region.gpu.back() = '\0';
  if (reply_.way == RendezvousWay::read) return end();
  if (reply_.way == RendezvousWay::pieces) return tell_pieces();
  try {
    start_copy();
  } catch (const Error& error) {
    return tell(RendezvousWay::pieces, error.what());
  }
  stage_ = Stage::copies;
  do_or_fail(session_, [this] {
    for (std::size_t run = 1; run < runs_.size(); ++run) put(run);
  });
}

void RendezvousSend::end() {
  stage_ = Stage::done;
  session_.rts.give_back(number_);
}

void RendezvousSend::tell_pieces() {
  const bool one_machine = session_.same_machine(static_cast<int>(peer_));
  tell(RendezvousWay::pieces, one_machine ? reply_.why_not_direct.data() : choose_network_way());
}

// Returns the note about the choice.
std::string RendezvousSend::choose_network_way() {
  Engine& engine = session_.engine();
  const Place there = reply_.on_gpu != 0 ? gpu(static_cast<int>(reply_.gpu_index)) : host(0);
  const auto way = engine.find_way(peer_, data_.region.place, there, data_.region.bytes);
  std::string apart = "the ranks are on two machines";
  if (!way) return apart;
  const NetworkPath& found = engine.ways().all()[*way];
  std::string why_not = engine.why_no_way(*way, peer_, true);
  if (found.reads_gpus() && (reply_.ucx_reaches == 0 || session_.gpus().platform().backend() != "cuda"))
    why_not = "UCX cannot reach the memory of these GPUs";
  if (!why_not.empty()) return apart + ", and not " + label(found.path) + ": " + why_not;
  verdict_.network_path = static_cast<std::uint32_t>(*way);
  pieces_.go_by(*way);
  return apart + ", " + label(found.path);
}

void RendezvousSend::check_reply() const {
  const auto refuse = [this](const std::string& why) {
    session_.fail(ErrorKind::invalid_input, text(call_) + ": " + why);
  };
  if (replied_.info.bytes != sizeof reply_) refuse("rank " + std::to_string(call_.peer) + " has sent no reply");
  if (reply_.bytes != data_.region.bytes || reply_.element_type != static_cast<std::uint32_t>(data_.type))
    refuse("rank " + std::to_string(call_.peer) + " receives " + std::to_string(reply_.bytes) + " bytes of " +
           (reply_.element_type < data_types ? std::string(name(static_cast<DataType>(reply_.element_type)))
                                             : "an unknown type"));
}

void RendezvousSend::start_copy() {
  const Place mine = data_.region.place;
  const auto theirs = session_.gpus().platform().find_gpu(reply_.region.identity());
  if (!theirs)
    throw Error(ErrorKind::unavailable,
                "this process does not see GPU " + std::string(reply_.region.identity()) + " (CUDA_VISIBLE_DEVICES?)");
  GpuConnections& connections = session_.gpus().connections();
  const bool reached = !session_.gpus().platform().why_no_peer_access(mine.index, theirs->index);
  opened_ = connections.open(reply_.region, reached ? mine : *theirs);
  there_ = opened_.region;
  there_.place = *theirs;
  connection_ = &connections.connection(mine, there_.place, there_.bytes, mine);
  if (runs_.size() > 1) beside_ = &connections.beside(*connection_);
  fault_point(ProtocolStep::gpu_copy);
  put(0);
}

// Behind what has been put.
void RendezvousSend::put(std::size_t run) {
  const ConstRegion& from = runs_[run];
  const GpuConnections::Connection& way = run % 2 == 0 ? *connection_ : *beside_;
  way.transport->put(there_.slice(std::exchange(put_, put_ + from.bytes), from.bytes), from, *way.stream);
}

bool RendezvousSend::has_copied() const {
  return connection_->stream->done() && (beside_ == nullptr || beside_->stream->done());
}

void RendezvousSend::tell(RendezvousWay way, const std::string& why) {
  const std::string all = with_second_reason(why, "the sender cannot share it", why_not_shared_);
  verdict_.way = way;
  all.copy(verdict_.why_not_direct.data(), verdict_.why_not_direct.size() - 1);
  if (way == RendezvousWay::pieces) session_.gpus().note_staged(static_cast<int>(peer_), all);
  stage_ = way == RendezvousWay::direct ? Stage::tells : Stage::pieces;
  if (way == RendezvousWay::pieces && runs_.size() > 1) do_or_fail(session_, [this] { gather(); });
  session_.engine().send_sized(peer_, rest_tag(true, session_.rank(), number_), &verdict_, sizeof verdict_, told_);
}

void RendezvousSend::gather() {
  Platform& platform = session_.gpus().platform();
  const Place place = data_.region.place;
  gathered_ = std::make_shared<Gathered>(platform.allocate(place, data_.region.bytes, Allocation::gpu),
                                         platform.open_stream(place));
  stage_ = Stage::gathers;
  const Region all = gathered_->memory.region().slice(0, data_.region.bytes);
  Bytes at = 0;
  for (const ConstRegion& run : runs_)
    gathered_->stream->copy(all.slice(std::exchange(at, at + run.bytes), run.bytes), run);
  data_.region = all;
}

std::string RendezvousSend::progress_text() const {
  switch (stage_) {
    case Stage::waits: return "the receiver has not taken the message";
    case Stage::copies: return "the copy from GPU to GPU has not ended";
    case Stage::gathers: return "its runs are being gathered";
    case Stage::pieces: return pieces_.progress_text("have been taken");
    default: return "the receiver has not heard of its end";
  }
}

RendezvousSend::~RendezvousSend() {
  const bool open = rts_.is_open() || offered_.is_open() || replied_.is_open() || told_.is_open();
  if (open || stage_ == Stage::copies || stage_ == Stage::gathers || pieces_.is_open()) session_.give_up(*this);
}

void RendezvousSend::abandon() noexcept {
  for (Message* message : {&rts_, &offered_, &replied_, &told_}) session_.engine().cancel(*message);
  pieces_.abandon();
  if (stage_ == Stage::copies)
    session_.engine().held().add_own(peer_, [way = connection_, beside = beside_, opened = std::move(opened_)] {
      return ended(*way->stream) && (beside == nullptr || ended(*beside->stream));
    });
  else if (stage_ == Stage::gathers)
    session_.engine().held().add_own(peer_, [gathered = gathered_] { return ended(*gathered->stream); });
  else if (source_.readable != 0 && (stage_ == Stage::waits))
    session_.engine().held().add(peer_, [] { return false; });
  stage_ = Stage::done;
}

}  // namespace waywiser
