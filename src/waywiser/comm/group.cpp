#include "waywiser/comm/group.hpp"

#include <numeric>

#include "waywiser/base/error.hpp"
#include "waywiser/comm/execution.hpp"
#include "waywiser/comm/transfer.hpp"

namespace waywiser {
namespace {

void check_tag(int tag) {
  if (tag < 0 || tag > largest_label)
    throw Error(ErrorKind::invalid_input, "tag " + std::to_string(tag) + " is not in 0 to 65535");
}

void check_host(Place place) {
  if (place.is_gpu())
    throw Error(ErrorKind::unavailable, "messages of " + text(place) + " memory are not there yet: copy to the host");
}

}  // namespace

Group Group::join(const JoinOptions& options) {
  auto session = std::make_shared<Session>(options);
  Members members{0, session->rank(), std::vector<int>(static_cast<std::size_t>(session->size()))};
  std::iota(members.world.begin(), members.world.end(), 0);
  return {std::move(session), std::move(members)};
}

Group::Group(std::shared_ptr<Session> session, Members members)
    : session_(std::move(session)),
      members_(std::make_shared<const Members>(std::move(members))),
      execution_(std::make_shared<Execution>(*session_)) {}

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
  check_peer(to, "send to");
  check_tag(tag);
  check_host(data.region.place);
  const Call call = next_call(CallKind::send, data, to);
  session_->begin(call);
  Transfer transfer(*session_, call, rank(), data.region.bytes);
  transfer.send(*members_, to, tag, data.region.data);
  session_->wait(transfer);
  session_->end();
}

void Group::recv(Elements data, int from, int tag) {
  check_peer(from, "recv from");
  check_tag(tag);
  check_host(data.region.place);
  const Call call = next_call(CallKind::recv, data, from);
  session_->begin(call);
  Transfer transfer(*session_, call, from, data.region.bytes);
  transfer.receive(*members_, tag, data.region.data);
  session_->wait(transfer);
  session_->end();
}

void Group::sendrecv(ConstElements data, int to, Elements into, int from, int tag) {
  Future receiving = start_recv(into, from, tag);
  send(data, to, tag);
  receiving.wait();
}

Future Group::start_send(ConstElements data, int to, int tag) {
  check_peer(to, "send to");
  check_tag(tag);
  check_host(data.region.place);
  const Call call = next_call(CallKind::send, data, to);
  session_->begin(call);
  auto transfer = std::make_shared<Transfer>(*session_, call, rank(), data.region.bytes);
  transfer->send(*members_, to, tag, data.region.data);
  session_->start(transfer);
  session_->end();
  return {session_, transfer};
}

Future Group::start_recv(Elements data, int from, int tag) {
  check_peer(from, "recv from");
  check_tag(tag);
  check_host(data.region.place);
  const Call call = next_call(CallKind::recv, data, from);
  session_->begin(call);
  auto transfer = std::make_shared<Transfer>(*session_, call, from, data.region.bytes);
  transfer->receive(*members_, tag, data.region.data);
  session_->start(transfer);
  session_->end();
  return {session_, transfer};
}

void Group::run(const Call& call, std::shared_ptr<const Schedule> schedule, ConstElements input, Elements output) {
  check_host(input.region.place);
  check_host(output.region.place);
  session_->begin(call);
  execution_->begin(members_, call, std::move(schedule), input, output);
  session_->wait(*execution_);
  session_->end();
}

Future Group::start(const Call& call, std::shared_ptr<const Schedule> schedule, ConstElements input, Elements output) {
  check_host(input.region.place);
  check_host(output.region.place);
  session_->begin(call);
  auto execution = std::make_shared<Execution>(*session_);
  execution->begin(members_, call, std::move(schedule), input, output);
  session_->start(execution);
  session_->end();
  return {session_, execution};
}

void Group::execute(std::shared_ptr<const Schedule> schedule, ConstElements input, Elements output, ReduceOp op) {
  run(next_call(CallKind::neighbor_exchange, input, -1, op), std::move(schedule), input, output);
}

void Group::neighbor_exchange(std::span<const Neighbor> neighbors) {
  std::vector<Future> under_way;
  for (const Neighbor& neighbor : neighbors)
    under_way.push_back(start_recv(neighbor.take, neighbor.rank, largest_label));
  for (const Neighbor& neighbor : neighbors)
    under_way.push_back(start_send(neighbor.give, neighbor.rank, largest_label));
  for (Future& future : under_way) future.wait();
}

}  // namespace waywiser
