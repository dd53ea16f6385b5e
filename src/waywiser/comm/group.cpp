#include "waywiser/comm/group.hpp"

#include <numeric>

#include "waywiser/base/error.hpp"
#include "waywiser/comm/announced_send.hpp"
#include "waywiser/comm/execution.hpp"
#include "waywiser/comm/exposed_memory.hpp"
#include "waywiser/comm/gpu_receive.hpp"
#include "waywiser/comm/process_end.hpp"
#include "waywiser/comm/staging.hpp"
#include "waywiser/comm/transfer.hpp"

namespace waywiser {
namespace {

constexpr int largest_tag = 0x7fff;
// Labels of neighbor_exchange.
constexpr int exchange_labels = 0x8000;
constexpr int exchange_tags = 0x7fff;

void check_tag(int tag) {
  if (tag < 0 || tag > largest_tag)
    throw Error(ErrorKind::invalid_input, "tag " + std::to_string(tag) + " is not in 0 to 32767");
}

bool through_host(ConstElements data) { return data.region.place.is_gpu() && data.region.bytes != 0; }

// Short messages to other machines go through the host at once: an announcement takes longer than the bytes.
bool is_announced(ConstElements data, bool one_machine) {
  return through_host(data) && (one_machine || data.region.bytes > longest_short);
}

// What comes would overtake what goes, or what else comes.
void check_apart(std::span<const Exchange> neighbors) {
  const auto check = [](const Exchange& taker, ConstElements other, const std::string& what) {
    if (overlap(taker.take.region, other.region))
      throw Error(ErrorKind::invalid_input, "neighbor_exchange: what is taken from rank " + std::to_string(taker.rank) +
                                                " overlaps what is " + what);
  };
  for (const Exchange& taker : neighbors)
    for (const Exchange& other : neighbors) {
      check(taker, other.give, "given to rank " + std::to_string(other.rank));
      if (&taker != &other) check(taker, other.take, "taken from rank " + std::to_string(other.rank));
    }
}

}  // namespace

Group Group::join(const JoinOptions& options) {
  end_kept_groups();
  std::shared_ptr<Session> session(new Session(options),
                                   [](Session* last) { end_with_process(std::unique_ptr<Session>(last)); });
  Members members{0, session->rank(), std::vector<int>(static_cast<std::size_t>(session->size()))};
  std::iota(members.world.begin(), members.world.end(), 0);
  return {std::move(session), std::move(members)};
}

Group::Group(std::shared_ptr<Session> session, Members members)
    : session_(std::move(session)),
      members_(std::make_shared<const Members>(std::move(members))),
      execution_(std::make_shared<Execution>(*session_)),
      exposed_(std::make_shared<ExposedMemory>()) {}

// The child of a fork leaves the parent's GPU alone.
Group::~Group() {
  if (session_ && session_->is_forked() && on_gpus_)
    static_cast<void>(new std::shared_ptr<GpuCollectives>(std::move(on_gpus_)));
}

void Group::check_peer(int rank, const char* what) const {
  if (rank < 0 || rank >= size())
    throw Error(ErrorKind::invalid_input, std::string(what) + " rank " + std::to_string(rank) +
                                              ": the group has ranks 0 to " + std::to_string(size() - 1));
}

Call Group::next_call(CallKind kind, ConstElements data, int peer, ReduceOp op, int root) {
  const std::uint64_t number = is_collective(kind) ? ++collectives_ : ++messages_;
  return {kind, data.type, op, members_->key(), root, peer, number, data.count()};
}

void Group::send(ConstElements data, int to, int tag) {
  check_tag(tag);
  send_labelled(data, to, tag);
}

void Group::recv(Elements data, int from, int tag) {
  check_tag(tag);
  recv_labelled(data, from, tag);
}

void Group::send_labelled(ConstElements data, int to, int label) {
  if (through_host(data)) return start_send_labelled(data, to, label).wait();
  check_peer(to, "send to");
  const Call call = next_call(CallKind::send, data, to);
  session_->begin(call);
  Transfer transfer(*session_, call, rank(), data.region.bytes);
  transfer.send(*members_, to, label, data.region.data, Awaited::by_sender);
  session_->wait(transfer);
  session_->end();
}

void Group::recv_labelled(Elements data, int from, int label) {
  if (through_host(data)) return start_recv_labelled(data, from, label).wait();
  check_peer(from, "recv from");
  const Call call = next_call(CallKind::recv, data, from);
  session_->begin(call);
  Transfer transfer(*session_, call, from, data.region.bytes);
  transfer.receive(*members_, label, data.region.data, data);
  session_->wait(transfer);
  session_->end();
}

void Group::check_sendrecv(ConstElements data, int to, Elements into, int from) const {
  check_peer(to, "send to");
  check_peer(from, "recv from");
  const bool same = data.region.data == into.region.data && data.region.bytes == into.region.bytes;
  if (!same && overlap(data.region, into.region))
    throw Error(ErrorKind::invalid_input, "sendrecv: the two arrays overlap; they may be the same, or apart");
}

void Group::sendrecv(ConstElements data, int to, Elements into, int from, int tag) {
  check_tag(tag);
  sendrecv_labelled(data, to, into, from, tag);
}

// What arrives in the array that is sent must not overtake it: then a copy is sent.
void Group::sendrecv_labelled(ConstElements data, int to, Elements into, int from, int label) {
  check_sendrecv(data, to, into, from);
  Staging staging(*session_);
  std::vector<std::byte> copy;
  if (overlap(data.region, into.region) && through_host(data)) {
    data = staging.input(data);
  } else if (overlap(data.region, into.region)) {
    copy.assign(data.region.data, data.region.data + data.region.bytes);
    data.region.data = copy.data();
  }
  Future receiving = start_recv_labelled(into, from, label);
  send_labelled(data, to, label);
  receiving.wait();
}

Future Group::start_send(ConstElements data, int to, int tag) {
  check_tag(tag);
  return start_send_labelled(data, to, tag);
}

Future Group::start_recv(Elements data, int from, int tag) {
  check_tag(tag);
  return start_recv_labelled(data, from, tag);
}

// True: all is done. False: nothing has happened.
bool Group::send_at_once(const Call& call, ConstElements data, int label) {
  const ucp_tag_t tag = members_->tag(rank(), static_cast<unsigned>(label), call);
  return session_->engine().send_at_once(members_->peer(call.peer), tag, data.region.data, data.region.bytes);
}

std::optional<ucp_tag_recv_info_t> Group::receive_at_once(const Call& call, Elements data, int label) {
  Call theirs = call;
  theirs.kind = CallKind::send;
  const ucp_tag_t tag = members_->tag(call.peer, static_cast<unsigned>(label), theirs);
  const auto came =
      session_->engine().receive_at_once(members_->peer(call.peer), tag, data.region.data, data.region.bytes);
  if (!came || is_announcement(came->sender_tag)) return came;
  if (const auto why = unlike(*came, tag, data.region.bytes, call.peer))
    session_->fail(ErrorKind::invalid_input, text(call) + ": " + *why);
  return came;
}

// None: too many are under way, and this one is short enough for the host. Long ones wait.
std::optional<unsigned> Group::announcement_number_for(const Call& call, ConstElements data) {
  session_->shared_platform();  // nobody hears of what cannot be sent
  auto number = session_->take_announcement_number();
  if (!number && data.region.bytes > longest_short)
    session_->wait(
        call, [&] { return (number = session_->take_announcement_number()).has_value(); },
        [] { return "none of " + std::to_string(announcement_numbers) + " messages out of GPUs has been taken"; });
  return number;
}

Future Group::start_send_labelled(ConstElements data, int to, int label) {
  check_peer(to, "send to");
  const Call call = next_call(CallKind::send, data, to);
  session_->begin(call);
  if (is_announced(data, session_->same_machine(static_cast<int>(members_->peer(to)))))
    if (const auto number = announcement_number_for(call, data))
      return begun(std::make_shared<AnnouncedSend>(*session_, *members_, call, label, data, *number), nullptr);
  if (!through_host(data) && send_at_once(call, data, label)) {
    session_->end();
    return {};
  }
  auto staging = through_host(data) ? std::make_unique<Staging>(*session_) : nullptr;
  const ConstElements here = staging ? staging->input(data) : data;
  auto transfer = std::make_shared<Transfer>(*session_, call, rank(), here.region.bytes);
  transfer->send(*members_, to, label, here.region.data);
  return begun(std::move(transfer), std::move(staging));
}

Future Group::start_recv_labelled(Elements data, int from, int label) {
  check_peer(from, "recv from");
  const Call call = next_call(CallKind::recv, data, from);
  session_->begin(call);
  if (through_host(data)) return begun(std::make_shared<GpuReceive>(*session_, *members_, call, label, data), nullptr);
  if (const auto came = receive_at_once(call, data, label)) {
    if (is_announcement(came->sender_tag))
      return begun(std::make_shared<AnnouncedReceive>(*session_, call, members_->peer(from), came->sender_tag, data),
                   nullptr);
    session_->end();
    return {};
  }
  auto transfer = std::make_shared<Transfer>(*session_, call, from, data.region.bytes);
  transfer->receive(*members_, label, data.region.data, data);
  return begun(std::move(transfer), nullptr);
}

std::string Group::encrypted_by(int rank) const {
  check_peer(rank, "encrypted_by of");
  return session_->engine().encrypted_by(members_->peer(rank));
}

std::string Group::why_staged(int rank) const {
  check_peer(rank, "why_staged of");
  return session_->why_staged(static_cast<int>(members_->peer(rank)));
}

Future Group::begun(std::shared_ptr<Activity> operation, std::unique_ptr<Staging> staging) {
  if (staging) operation = std::make_shared<StagedActivity>(std::move(operation), std::move(staging));
  session_->start(operation);
  session_->end();
  return {session_, std::move(operation)};
}

void Group::check_neighbors(std::span<const Exchange> neighbors) const {
  for (const Exchange& each : neighbors) {
    check_peer(each.rank, "neighbor_exchange with");
    for (const int tag : {each.give_tag, each.take_tag})
      if (tag < 0 || tag >= exchange_tags)
        throw Error(ErrorKind::invalid_input, "tag " + std::to_string(tag) + " of a neighbour is not in 0 to 32766");
  }
  check_apart(neighbors);
}

void Group::neighbor_exchange(std::span<const Exchange> neighbors) {
  check_neighbors(neighbors);
  std::vector<Future> under_way;
  under_way.reserve(2 * neighbors.size());
  for (const Exchange& each : neighbors)
    under_way.push_back(start_recv_labelled(each.take, each.rank, exchange_labels + each.take_tag));
  for (const Exchange& each : neighbors)
    under_way.push_back(start_send_labelled(each.give, each.rank, exchange_labels + each.give_tag));
  for (Future& future : under_way) future.wait();
}

void Group::run(const Call& call, std::shared_ptr<const Schedule> schedule, ConstElements input, Elements output) {
  if (begins_ != nullptr) {
    *begins_ = start(call, std::move(schedule), input, output);
    return;
  }
  if (through_host(input) || through_host(output)) return start(call, std::move(schedule), input, output).wait();
  session_->begin(call);
  execution_->begin(members_, call, std::move(schedule), input, output);
  session_->wait(*execution_);
  session_->end();
}

Future Group::start(const Call& call, std::shared_ptr<const Schedule> schedule, ConstElements input, Elements output) {
  session_->begin(call);
  auto staging = std::make_unique<Staging>(*session_);
  if (!through_host(input) && !through_host(output)) staging.reset();
  auto execution = std::make_shared<Execution>(*session_);
  execution->begin(members_, call, std::move(schedule), staging ? staging->input(input) : input,
                   staging ? staging->output(output) : output);
  return begun(std::move(execution), std::move(staging));
}

void Group::execute(std::shared_ptr<const Schedule> schedule, ConstElements input, Elements output, ReduceOp op) {
  run(next_call(CallKind::neighbor_exchange, input, -1, op), std::move(schedule), input, output);
}

}  // namespace waywiser
