#include "waywiser/group/group_messages.hpp"

#include "waywiser/base/error.hpp"
#include "waywiser/base/timeout.hpp"
#include "waywiser/comm/message/fault_point.hpp"
#include "waywiser/comm/rendezvous/rendezvous_send.hpp"
#include "waywiser/comm/rendezvous/transfer.hpp"
#include "waywiser/comm/session/call_arrays.hpp"
#include "waywiser/comm/session/in_call.hpp"
#include "waywiser/comm/session/joint_activity.hpp"
#include "waywiser/comm/windows/host_staging.hpp"
#include "waywiser/group/named_receive.hpp"

namespace waywiser {
namespace {

// Labels of exchanges start here.
constexpr int exchange_labels = 0x8000;
constexpr int exchange_tags = 0x7fff;

// Of a GPU. Short messages to other machines go through the host at once: an RTS takes longer than the bytes.
bool is_announced(const Session& session, ConstElements data, std::uint32_t peer) {
  return data.region.bytes > longest_short || session.same_machine(static_cast<int>(peer));
}

// Without this check an arriving message could overwrite data not yet sent, or another arriving message.
void check_apart(std::span<const Exchange> neighbors) {
  std::vector<PartUse> uses;
  uses.reserve(2 * neighbors.size());
  for (std::size_t i = 0; i < neighbors.size(); ++i) {
    uses.push_back({neighbors[i].give.region, i, false});
    uses.push_back({neighbors[i].take.region, i, true});
  }
  check_exchange(uses, [&](std::size_t part) { return neighbors[part].rank; });
}

// If a message arrives in the array that is being sent, a copy is sent instead. Returns the memory of the copy; empty:
// no copy.
std::vector<std::byte> copy_if_same(ConstElements& data, Elements into) {
  std::vector<std::byte> copy;
  if (!share_memory(data.region, into.region)) return copy;
  copy.assign(data.region.data, data.region.data + data.region.bytes);
  data.region.data = copy.data();
  return copy;
}

}  // namespace

void GroupMessages::send(const ConstElements& data, int to, int label) {
  if (is_staged(data)) return begin_send(data, to, label).wait();
  core_.check_rank(to, "send to");
  const Call call = core_.next_call(CallKind::send, data, to);
  const InCall in_call(session_, call);
  const MailboxMessages& lanes = session_.engine().mailboxes();
  if (data.region.bytes <= lanes.sizes().lane && lanes.reaches(members().peer(to)))
    fault_point(ProtocolStep::lane_write);
  if (send_at_once(call, data, label)) [[likely]]
    return;
  Transfer transfer(session_, call, core_.rank(), data.region.bytes);
  transfer.send(members(), to, label, data.region.data, Awaited::by_sender);
  session_.wait(transfer);
}

void GroupMessages::recv(const Elements& data, int from, int label) {
  if (is_staged(data) || has_wildcards()) return begin_recv(data, from, label).wait();
  core_.check_rank(from, "recv from");
  const Call call = core_.next_call(CallKind::recv, data, from);
  const InCall in_call(session_, call);
  receive_named(session_, members(), call, data, label);
}

void GroupMessages::check_sendrecv(ConstElements data, int to, Elements into, int from, bool copies) const {
  core_.check_rank(to, "send to");
  check_envelope({from, 0}, "recv from");
  check_apart(CallKind::sendrecv, {.read = data.region, .written = into.region, .copies = copies});
}

void GroupMessages::sendrecv(ConstElements data, int to, Elements into, int from, int label) {
  check_sendrecv(data, to, into, from, true);
  Staging staging(session_);
  std::vector<std::byte> copy;
  if (share_memory(data.region, into.region) && is_staged(data))
    data = staging.input(data);
  else
    copy = copy_if_same(data, into);
  Future receiving = begin_recv(into, from, label);
  send(data, to, label);
  receiving.wait();
}

// A staged copy would have to outlive this call.
Future GroupMessages::begin_sendrecv(ConstElements data, int to, Elements into, int from, int label) {
  check_sendrecv(data, to, into, from, !is_staged(data));
  std::vector<std::byte> copy = copy_if_same(data, into);
  auto parts = std::make_shared<JointActivity>(session_, core_.next_call(CallKind::sendrecv, data, to));
  parts->keep(std::move(copy));
  parts->add(start_recv(into, from, label));
  parts->add(start_send(data, to, label));
  return begun(std::move(parts));
}

// True: all is done. False: nothing has happened.
bool GroupMessages::send_at_once(const Call& call, const ConstElements& data, int label) {
  const Tag tag = members().tag(core_.rank(), static_cast<unsigned>(label), call);
  return session_.engine().send_at_once(members().peer(call.peer), tag, data.region.data, data.region.bytes);
}

// None: too many messages are under way, and this one may go through the host. Others wait.
std::optional<unsigned> GroupMessages::announcement_number_for(const Call& call, bool waits) {
  session_.gpus().shared_platform();  // throws before any rank hears of it
  auto number = session_.rts.take();
  if (!number && waits)
    session_.wait(
        call, [&] { return (number = session_.rts.take()).has_value(); },
        [] { return "none of " + std::to_string(rts_numbers) + " messages out of GPUs has been taken"; });
  return number;
}

std::shared_ptr<Activity> GroupMessages::started(std::shared_ptr<Activity> operation) {
  session_.start(operation);
  return operation;
}

Future GroupMessages::future_of(std::shared_ptr<Activity> operation) {
  if (!operation) return {};
  return {core_.shared_from_this(), std::move(operation)};
}

std::shared_ptr<Activity> GroupMessages::start_send(const ConstElements& data, int to, int label) {
  core_.check_rank(to, "send to");
  const Call call = core_.next_call(CallKind::send, data, to);
  const InCall in_call(session_, call);
  const bool of_gpu = is_staged(data);
  if (!of_gpu && send_at_once(call, data, label)) [[likely]]
    return {};
  if (of_gpu && is_announced(session_, data, members().peer(to)))
    if (const auto number = announcement_number_for(call, data.region.bytes > longest_short))
      return started(std::make_shared<RendezvousSend>(session_, members(), call, label, data, *number));
  auto staging = of_gpu ? std::make_unique<Staging>(session_) : nullptr;
  const ConstElements here = staging ? staging->input(data) : data;
  auto transfer = std::make_shared<Transfer>(session_, call, core_.rank(), here.region.bytes);
  transfer->send(members(), to, label, here.region.data);
  return started(staged(std::move(transfer), std::move(staging)));
}

Future GroupMessages::begin_send_runs(const std::vector<ConstElements>& runs, int to, int label) {
  if (runs.size() == 1) return begin_send(runs.front(), to, label);
  core_.check_rank(to, "send to");
  ConstElements all = runs.front();
  all.region.bytes = 0;
  std::vector<ConstRegion> regions;
  for (const ConstElements& run : runs) all.region.bytes += regions.emplace_back(run.region).bytes;
  if (is_staged(all)) {
    const Call call = core_.next_call(CallKind::send, all, to);
    const InCall in_call(session_, call);
    const unsigned number = *announcement_number_for(call, true);
    return future_of(
        started(std::make_shared<RendezvousSend>(session_, members(), call, label, all, std::move(regions), number)));
  }
  auto copy = std::make_shared<std::vector<std::byte>>();
  copy->reserve(all.region.bytes);
  for (const ConstRegion& run : regions) copy->insert(copy->end(), run.data, run.data + run.bytes);
  all.region.data = copy->data();
  Future sent = begin_send(all, to, label);
  if (sent.is_under_way()) sent.keep(std::move(copy));
  return sent;
}

std::shared_ptr<Activity> GroupMessages::start_recv(const Elements& data, int from, int label) {
  if (from == any_source || (has_wildcards() && label < exchange_labels)) [[unlikely]]
    return start_recv(data, {from, label}, nullptr);
  core_.check_rank(from, "recv from");
  const Call call = core_.next_call(CallKind::recv, data, from);
  const InCall in_call(session_, call);
  auto operation = named_receive(session_, members(), call, data, label);
  return operation ? started(std::move(operation)) : nullptr;
}

std::shared_ptr<Activity> GroupMessages::start_recv(Elements data, Envelope wanted, MessageStatus* status) {
  check_envelope(wanted, "recv from");
  if (is_staged(data)) session_.gpus().shared_platform();  // throws before the call has begun
  const Call call = core_.next_call(CallKind::recv, data, wanted.source == any_source ? -1 : wanted.source);
  const InCall in_call(session_, call);
  return started(wildcards().add(call, data, wanted, status));
}

std::optional<MessageStatus> GroupMessages::probe(Envelope wanted, std::optional<Seconds> patience) {
  check_envelope(wanted, "probe");
  if (patience && !(*patience >= 0 && *patience <= longest_timeout))
    throw Error(ErrorKind::invalid_input, "probe: a patience of " + std::to_string(*patience) + " s is not in 0 to " +
                                              std::to_string(longest_timeout) + " s");
  const Call call = core_.next_call(CallKind::probe, {}, wanted.source == any_source ? -1 : wanted.source);
  const InCall in_call(session_, call);
  const Deadline end = Deadline::in(patience.value_or(0));
  std::optional<Received> found;
  session_.progress();
  session_.wait(
      call, [&] { return (found = wildcards().find(wanted)).has_value() || (patience && end.passed()); },
      [] { return "no message has come"; }, patience.value_or(0));
  if (!found) return {};
  return wildcards().status_of(*found, call);
}

void GroupMessages::check_envelope(Envelope wanted, const char* what) const {
  if (wanted.source != any_source) core_.check_rank(wanted.source, what);
}

Wildcards& GroupMessages::wildcards() {
  if (!wildcards_) wildcards_ = std::make_shared<Wildcards>(session_, core_.shared_members());
  return *wildcards_;
}

void GroupMessages::check_neighbor(int rank, int give_tag, int take_tag) const {
  core_.check_rank(rank, "neighbor_exchange with");
  for (const int tag : {give_tag, take_tag})
    if (tag < 0 || tag >= exchange_tags)
      throw Error(ErrorKind::invalid_input, "tag " + std::to_string(tag) + " of a neighbour is not in 0 to 32766");
}

void GroupMessages::check_exchange(std::span<const Exchange> neighbors) const {
  for (const Exchange& each : neighbors) check_neighbor(each.rank, each.give_tag, each.take_tag);
  check_apart(neighbors);
}

std::shared_ptr<JointActivity> GroupMessages::start_exchange(std::span<const Exchange> neighbors) {
  check_exchange(neighbors);
  const Exchange first = neighbors.empty() ? Exchange{} : neighbors.front();
  Call call{CallKind::neighbor_exchange, first.give.type};
  call.group = members().key();
  call.count = first.give.count();
  auto parts = std::make_shared<JointActivity>(session_, call);
  for (const Exchange& each : neighbors) parts->add(start_recv(each.take, each.rank, exchange_labels + each.take_tag));
  for (const Exchange& each : neighbors) parts->add(start_send(each.give, each.rank, exchange_labels + each.give_tag));
  return parts;
}

void GroupMessages::exchange(std::span<const Exchange> neighbors) { start_exchange(neighbors)->finish(); }

Future GroupMessages::begin_exchange(std::span<const Exchange> neighbors) { return begun(start_exchange(neighbors)); }

Future GroupMessages::begun(std::shared_ptr<JointActivity> parts) {
  if (parts->advance()) return {};
  return future_of(started(std::move(parts)));
}

}  // namespace waywiser
