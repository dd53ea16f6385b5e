#include "waywiser/offload/remote_gpu.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

#include "waywiser/base/crypto.hpp"
#include "waywiser/base/timeout.hpp"
#include "waywiser/offload/array_head_wire.hpp"
#include "waywiser/offload/remote_gpu_state.hpp"

namespace waywiser {
RemoteGpu::RemoteGpu(Group group, std::string name, Bytes limit, std::shared_ptr<void> connection, bool admits_plain)
    : state_(std::make_unique<State>(std::move(group), std::move(name), limit, std::move(connection), admits_plain)) {}
RemoteGpu::RemoteGpu(RemoteGpu&& other) noexcept = default;
RemoteGpu& RemoteGpu::operator=(RemoteGpu&& other) noexcept {
  const RemoteGpu before(std::exchange(state_, std::move(other.state_)));
  return *this;
}
RemoteGpu::RemoteGpu(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
RemoteGpu::~RemoteGpu() { close(); }

RemoteGpu::State& RemoteGpu::held() const {
  if (!state_)
    throw Error(ErrorKind::invalid_input, "this RemoteGpu was moved from: its server and arrays are in another one");
  return *state_;
}

const std::string& RemoteGpu::name() const { return held().name; }

std::string RemoteGpu::encrypted_by() const { return held().group.encrypted_by(worker_rank); }

Bytes RemoteGpu::limit() const { return held().limit; }

void RemoteGpu::use_road(DataRoad road) {
  const auto alone = held().alone("road");
  held().add("road", requests::UseRoad{road});
}

std::uint64_t RemoteGpu::zeros(const ArrayHead& head) {
  const auto alone = held().alone("zeros");
  held().check_new(head);
  held().add("zeros", requests::Zeros{{++held().last, head}});
  return held().last;
}

std::uint64_t RemoteGpu::array(const ArrayHead& head, ConstRegion bytes) {
  const auto alone = held().alone("array");
  held().check_new(head);
  if (head.bytes() != bytes.bytes)
    throw Error(ErrorKind::invalid_input,
                std::to_string(bytes.bytes) + " bytes for an array of " + std::to_string(head.bytes()));
  const Seconds begin = now_seconds();
  const std::uint64_t number = ++held().last;
  if (const auto pinned = held().pinned_at(bytes))
    held().copy_pinned("array", requests::ArrayFrom{{number, head, pinned.place}}, pinned);
  else
    held().add("array", requests::NewArray{{number, head}}, bytes, held().arrays());
  held().input.add(begin, now_seconds());
  return held().last;
}

std::uint64_t RemoteGpu::array(ConstElements values) {
  return array(ArrayHead{values.type, false, {values.count()}}, values.region);
}

void RemoteGpu::put(std::uint64_t array, Bytes offset, ConstRegion bytes) {
  const auto alone = held().alone("put");
  const requests::PartOfArray part{array, offset, bytes.bytes};
  const Seconds begin = now_seconds();
  if (const auto pinned = held().pinned_at(bytes))
    held().copy_pinned("put", requests::PutFrom{{part, pinned.place}}, pinned);
  else
    held().add("put", requests::Put{part}, bytes, held().arrays());
  held().input.add(begin, now_seconds());
}

ArrayHead RemoteGpu::get(std::uint64_t array, Elements into) {
  const auto alone = held().alone("get");
  if (const auto pinned = held().pinned_at(into.region)) {
    const requests::GetInto get{{array, {into.type, false, {into.count()}}, pinned.place}};
    const Seconds begin = now_seconds();
    const RemoteReply reply = held().copy_pinned("get", get, pinned);
    held().output.add(begin, now_seconds());
    if (!reply.head) throw Error(ErrorKind::invalid_input, held().name + ": an answer without an array");
    return *reply.head;
  }
  ArrayHead told;
  std::string problem;
  std::vector<std::byte> elsewhere;
  get(array, [&](const ArrayHead& head) {
    told = head;
    problem = why_no_room(head, into.type, into.count());
    if (problem.empty()) return into.region;
    elsewhere.resize(head.bytes());
    return Region{elsewhere.data(), elsewhere.size(), host(0)};
  });
  if (!problem.empty()) throw Error(ErrorKind::invalid_input, held().name + ": " + problem);
  return told;
}

void RemoteGpu::get(std::uint64_t array, const std::function<Region(const ArrayHead& head)>& room) {
  const auto alone = held().alone("get");
  const Seconds begin = now_seconds();
  const RemoteReply reply = held().answer("get", requests::Get{{array}});
  Region into;
  try {
    if (!reply.head) throw Error(ErrorKind::invalid_input, held().name + ": an answer without an array");
    into = room(*reply.head);
    if (into.bytes != reply.head->bytes())
      throw Error(ErrorKind::invalid_input, "room of " + std::to_string(into.bytes) + " bytes for an array of " +
                                                std::to_string(reply.head->bytes()));
  } catch (...) {
    held().group.abort("the client has no room for an array");  // whose bytes are on their way
    throw;
  }
  held().receive("get", into);
  held().output.add(begin, now_seconds());
}

void RemoteGpu::free(std::uint64_t number) {
  const auto alone = held().alone("free");
  held().add("free", requests::Free{{number}});
  if (held().stream == number) held().stream = 0;
}

std::uint64_t RemoteGpu::run(std::string_view function, std::span<const std::uint64_t> arrays,
                             std::span<const RemoteNumber> numbers) {
  const auto alone = held().alone("run");
  const requests::Run request{
      ++held().last, std::string(function), {arrays.begin(), arrays.end()}, {numbers.begin(), numbers.end()}};
  const Seconds begin = now_seconds();
  held().add("run", request);
  held().compute.add(begin, now_seconds());
  return held().last;
}

std::uint64_t RemoteGpu::load_kernels(std::string_view code) {
  const auto alone = held().alone("load_kernels");
  if (code.empty() || code.size() > longest_code)
    throw Error(ErrorKind::invalid_input, "kernels have 1 to " + std::to_string(longest_code) + " bytes of code");
  const requests::LoadCode load{++held().last, code.size()};
  held().add("load_kernels", load, {reinterpret_cast<const std::byte*>(code.data()), code.size(), host(0)},
             held().group);
  held().reply_to("load_kernels");
  return held().last;
}

void RemoteGpu::launch(std::uint64_t code, std::string_view kernel, const LaunchShape& shape,
                       std::span<const KernelArgument> arguments) {
  const auto alone = held().alone("launch");
  const requests::LaunchKernel request{code, std::string(kernel), shape, {arguments.begin(), arguments.end()}};
  const Seconds begin = now_seconds();
  held().add("launch", request);
  held().compute.add(begin, now_seconds());
}

std::uint64_t RemoteGpu::copy_of(RemoteGpu& other, std::uint64_t array) {
  const auto alone = held().alone("copy_of");
  if (&other == this) throw Error(ErrorKind::invalid_input, name() + ": an array of this GPU itself");
  const auto also = other.held().alone("copy_of");
  held().answer("copy_of");  // or the other server would wait for all earlier requests here
  std::array<std::byte, digits_of_secret / 2> random{};
  fill_with_random(random);
  const requests::Give give{array, hexadecimal(random), copies_plain(other)};
  requests::Take take{++held().last, give.secret, "", give.plain};
  take.address = other.held().answer("copy_of", give).address;
  held().add("copy_of", take);
  flush();
  return held().last;
}

bool RemoteGpu::copies_plain(const RemoteGpu& other) const {
  const auto is_plain = [](const State& state) { return state.wants_plain && (state.admits_plain || state.plain); };
  return is_plain(held()) && is_plain(other.held());
}

void RemoteGpu::flush() {
  const auto alone = held().alone("flush");
  held().check_open();
  held().told_as("flush", [this] { held().requests.flush(); });
}

void RemoteGpu::synchronize() {
  const auto alone = held().alone("synchronize");
  const Seconds begin = now_seconds();
  held().answer("synchronize");
  held().compute.end = now_seconds();
  held().compute.total += held().compute.end - begin;
}

RemoteTimes RemoteGpu::times() {
  const auto alone = held().alone("times");
  held().answer("times");  // what the GPU's clock says is read behind each answer
  const RemoteReply reply = held().answer("times");
  return {held().input, held().compute, held().output, reply.times};
}

ClockOffset RemoteGpu::align_clocks(int rounds) {
  const auto alone = held().alone("align_clocks");
  ClockOffset best{0, longest_timeout};
  for (int round = 0; round < std::max(rounds, 1); ++round) {
    const Seconds begin = now_seconds();
    const Seconds there = held().answer("align_clocks").times.now;
    const Seconds end = now_seconds();
    if (const Seconds error = (end - begin) / 2; error < best.error) best = {there - (begin + end) / 2, error};
  }
  return best;
}

void RemoteGpu::close() noexcept {
  if (state_) state_->close();
}

// Another thread's call ends first.
void RemoteGpu::State::close() noexcept {
  Session& session = session_of(group);
  while (!session.call_lock().hold()) ::usleep(100);
  close_held();
  session.let_go();
}

void RemoteGpu::State::close_held() noexcept {
  if (std::exchange(closed, true)) return;
  try {
    requests.add(bytes_of_request(requests::End{}));
    requests.flush();
    if (plain) plain->close();
    group.close();
  } catch (const std::exception&) {  // it has gone, and with it the arrays
  }
  connection.reset();
}

// Another thread may be in a call, and stays there: the server hears that the connection ends.
void RemoteGpu::State::end_with_process() noexcept {
  Session& session = session_of(group);
  if (session.current().kind != CallKind::none || !session.call_lock().hold()) return connection.reset();
  close_held();
}

}  // namespace waywiser
