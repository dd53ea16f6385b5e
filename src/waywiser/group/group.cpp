#include "waywiser/group/group.hpp"

#include <algorithm>
#include <mutex>
#include <numeric>
#include <utility>

#include "waywiser/base/error.hpp"
#include "waywiser/comm/bootstrap/join_options.hpp"
#include "waywiser/comm/network/encryption.hpp"
#include "waywiser/comm/session/in_call.hpp"
#include "waywiser/comm/session/process_end.hpp"
#include "waywiser/device/platform.hpp"
#include "waywiser/group/group_state.hpp"
#include "waywiser/group/inside.hpp"
#include "waywiser/group/window_state.hpp"

namespace waywiser {
namespace {

std::shared_ptr<Platform> open_cuda() {
  if (const auto why = why_no_cuda())
    throw Error(ErrorKind::unavailable, "an array is on a GPU, but there is no CUDA device: " + *why);
  return open_cuda_platform();
}

JoinOptions with_cuda() {
  JoinOptions options;
  options.open_platform = open_cuda;
  return options;
}

constexpr int largest_tag = 0x7fff;

void check_tag(int tag, Mode mode) {
  if (tag < 0 || tag > largest_tag)
    throw Error(ErrorKind::invalid_input, "tag " + std::to_string(tag) + " is not in 0 to 32767");
  if (tag != 0 && mode.stream() != nullptr)
    throw Error(ErrorKind::invalid_input, "tag " + std::to_string(tag) + ": messages on streams have none");
}

}  // namespace

Group::State::State(std::shared_ptr<Session> session, Members members)
    : core(std::make_shared<GroupCore>(std::move(session), std::move(members))),
      hosts(*core),
      messages(*core),
      exposed(std::make_shared<ExposedMemory>()),
      gpus(hosts, messages, exposed) {}

const JoinOptions& usual_options() {
  static const JoinOptions options = with_cuda();
  return options;
}

Group Group::join(const JoinOptions& options) {
  end_kept_groups();
  std::shared_ptr<Session> session(new Session(options),
                                   [](Session* last) { end_with_process(std::unique_ptr<Session>(last)); });
  Members members{0, session->rank(), std::vector<int>(static_cast<std::size_t>(session->size()))};
  std::iota(members.world.begin(), members.world.end(), 0);
  return Group(std::make_shared<State>(std::move(session), std::move(members)));
}

Group::State* Group::StatePointer::operator->() const {
  if (get() == nullptr)
    throw Error(ErrorKind::invalid_input, "this Group was moved from: its ranks are in another one");
  return get();
}

Group::Group(std::shared_ptr<State> state) : state_(std::move(state)) {}
Group::Group(Group&& other) noexcept = default;
Group& Group::operator=(Group&& other) noexcept {
  const Group before(std::exchange(state_, std::move(other.state_)));
  return *this;
}
Group::~Group() {
  if (!state_) return;
  const std::shared_ptr<Session> session = state_->core->shared_session();  // goes when it is unlocked
  const WhenFree lock(session->call_lock());
  state_.reset();
}

int Group::rank() const { return state_->core->rank(); }
int Group::size() const { return state_->core->size(); }
Seconds Group::timeout() const { return state_->session().timeout(); }
void Group::set_timeout(Seconds timeout) { state_->session().set_timeout(timeout); }
const std::shared_ptr<Platform>& Group::platform() const { return state_->session().gpus().shared_platform(); }

void Group::close() { state_->session().close(); }
void Group::abort(const std::string& why) noexcept {
  if (state_) state_->session().abort(why);
}

std::string Group::failure() const { return state_->session().failure(); }

void leave_to_end(Group& group) noexcept {
  if (!group.state_) return;
  const std::shared_ptr<Session> session = group.state_->core->shared_session();
  end_with_process(session, std::move(group.state_));
}

Future Group::send(ConstElements data, int to, int tag, Mode mode) {
  check_tag(tag, mode);
  State& state = *state_.operator->();
  const std::lock_guard lock(*state.core);
  if (mode.begins()) return state.messages.begin_send(data, to, tag);
  mode.stream() != nullptr ? state.gpus.send(data, to, *mode.stream()) : state.messages.send(data, to, tag);
  return {};
}

Future Group::recv(Elements data, int from, int tag, Mode mode, MessageStatus* status) {
  if (from == any_source || tag == any_tag || status != nullptr) [[unlikely]]
    return recv_any(data, {from, tag}, mode, status);
  check_tag(tag, mode);
  State& state = *state_.operator->();
  const std::lock_guard lock(*state.core);
  if (mode.begins()) return state.messages.begin_recv(data, from, tag);
  mode.stream() != nullptr ? state.gpus.recv(data, from, *mode.stream()) : state.messages.recv(data, from, tag);
  return {};
}

Future Group::recv_any(Elements data, Envelope wanted, Mode mode, MessageStatus* status) {
  if (mode.stream() != nullptr)
    throw Error(ErrorKind::invalid_input, "recv on a stream: it names its source, and it has no tag and no status");
  if (wanted.tag != any_tag) check_tag(wanted.tag, mode);
  const std::lock_guard lock(*state_->core);
  Future future = state_->messages.begin_recv(data, wanted, status);
  if (!mode.begins()) future.wait();
  return future;
}

std::optional<MessageStatus> Group::probe(int from, int tag, std::optional<Seconds> patience) {
  if (tag != any_tag) check_tag(tag, Mode::wait);
  const std::lock_guard lock(*state_->core);
  return state_->messages.probe({from, tag}, patience);
}

Future Group::sendrecv(ConstElements data, int to, Elements into, int from, int tag, Mode mode) {
  check_tag(tag, mode);
  const std::lock_guard lock(*state_->core);
  if (mode.begins()) return state_->messages.begin_sendrecv(data, to, into, from, tag);
  if (mode.stream() != nullptr)
    state_->gpus.sendrecv(data, to, into, from, *mode.stream());
  else
    state_->messages.sendrecv(data, to, into, from, tag);
  return {};
}

Future Group::neighbor_exchange(std::span<const Exchange> neighbors, Mode mode) {
  const std::lock_guard lock(*state_->core);
  if (mode.begins()) return state_->messages.begin_exchange(neighbors);
  mode.stream() != nullptr ? state_->gpus.exchange(neighbors, *mode.stream()) : state_->messages.exchange(neighbors);
  return {};
}

void Group::prepare(Place gpu, Bytes largest) {
  const std::lock_guard lock(*state_->core);
  state_->gpus.prepare(gpu, largest);
}

void Group::synchronize(Stream& stream) {
  const std::lock_guard lock(*state_->core);
  state_->gpus.synchronize(stream);
}

Window Group::expose(Region memory, bool symmetric) {
  const std::lock_guard lock(*state_->core);
  return Window(memory.place.is_gpu() ? Window::State::of_gpu(state_->core, memory, symmetric, state_->exposed)
                                      : Window::State::of_host(state_->core, memory));
}

void Group::flush() {
  const std::lock_guard lock(*state_->core);
  const Call call = state_->core->next_call(CallKind::put, {});
  const InCall in_call(state_->session(), call);
  flush_puts(state_->session(), call, state_->core->members().peer(rank()));
}

std::string Group::why_staged() const {
  const std::lock_guard lock(*state_->core);
  return state_->gpus.why_staged();
}

std::string Group::why_staged(int rank) const {
  state_->core->check_rank(rank, "why_staged of");
  const std::lock_guard lock(*state_->core);
  return state_->session().gpus().why_staged(static_cast<int>(state_->core->members().peer(rank)));
}

std::string Group::encrypted_by(int rank) const {
  state_->core->check_rank(rank, "encrypted_by of");
  const std::lock_guard lock(*state_->core);
  Session& session = state_->session();
  const auto peer = state_->core->members().peer(rank);
  const std::string by = session.engine().encrypted_by(peer);
  const bool is_to_come = by.empty() && session.engine().is_encrypted(peer);
  return is_to_come ? wanted_encryption(session.options().chooser.get()) : by;
}

bool authenticated(const Group& group) {
  const std::lock_guard lock(*group.state_->core);
  const auto& session = group.state_->session();
  const auto& world = group.state_->core->members().world;
  return session.network().encrypted ||
         std::ranges::all_of(world, [&](int rank) { return session.same_machine(rank); });
}

const std::shared_ptr<GroupCore>& core_of(const Group& group) { return group.state_->core; }

void Group::set_algorithm(std::string_view name) {
  const std::lock_guard lock(*state_->core);
  const std::optional<Way> way = name.empty() ? std::nullopt : std::optional(parse_way(name));
  state_->hosts.set_algorithm(way);
  state_->gpus.set_algorithm(way);
}

std::shared_ptr<Stream> borrow_stream(const Group& group, Place gpu, void* cuda_stream) {
  return group.platform()->borrow_stream(gpu, reinterpret_cast<std::uintptr_t>(cuda_stream));
}

}  // namespace waywiser
