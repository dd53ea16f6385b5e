#include "waywiser/group/window.hpp"

#include <atomic>
#include <mutex>
#include <utility>

#include "waywiser/base/error.hpp"
#include "waywiser/comm/session/call_arrays.hpp"
#include "waywiser/comm/session/in_call.hpp"
#include "waywiser/group/window_state.hpp"

namespace waywiser {
namespace {

void check_host(Place place) {
  if (place.is_gpu())
    throw Error(ErrorKind::unavailable,
                "between " + text(place) + " and a window of host memory: copy to the host first");
}

}  // namespace

Window::State& Window::held() const {
  if (!state_) throw Error(ErrorKind::invalid_input, "this Window was moved from: its memory is in another one");
  return *state_;
}

Window::Window(std::unique_ptr<State> state) : state_(std::move(state)) {}
Window::Window(Window&& other) noexcept = default;
Window& Window::operator=(Window&& other) noexcept {
  const Window before(std::exchange(state_, std::move(other.state_)));
  return *this;
}
Window::~Window() {
  if (!state_) return;
  const std::shared_ptr<Session> session = state_->core->shared_session();  // goes when it is unlocked
  session->lock_when_free_of(state_->core->members().key());
  const std::lock_guard lock(*session, std::adopt_lock);
  state_.reset();
}

Region Window::local() const { return held().local; }

Bytes Window::bytes_of(int rank) const {
  held().check(rank, 0, 0);
  return held().bytes[static_cast<std::size_t>(rank)];
}

void Window::put(ConstRegion data, int to, Bytes offset) const {
  const std::lock_guard lock(*held().core);
  held().check_access(to, offset, data.bytes);
  if (to == held().core->rank()) check_apart(CallKind::put, {data, local().slice(offset, data.bytes)});
  const Call call = held().core->next_call(CallKind::put, {data, DataType::uint8}, to);
  const InCall in_call(held().session(), call);
  if (held().on_gpus) return held().on_gpus->put(to, offset, data);
  check_host(data.place);
  held().on_hosts->put(call, offset, data);
}

void Window::get(Region data, int from, Bytes offset) const {
  const std::lock_guard lock(*held().core);
  held().check_access(from, offset, data.bytes);
  if (from == held().core->rank()) check_apart(CallKind::get, {local().slice(offset, data.bytes), data});
  const Call call = held().core->next_call(CallKind::get, {data, DataType::uint8}, from);
  const InCall in_call(held().session(), call);
  if (held().on_gpus) return held().on_gpus->get(from, offset, data);
  check_host(data.place);
  held().on_hosts->get(call, offset, data);
}

void Window::signal(int to, Bytes offset, std::uint64_t value) const {
  const std::lock_guard lock(*held().core);
  if (offset % sizeof value != 0) throw Error(ErrorKind::invalid_input, "a signal needs an aligned offset");
  held().check_access(to, offset, sizeof value);
  const Call call = held().core->next_call(CallKind::signal, {}, to);
  const InCall in_call(held().session(), call);
  if (held().on_gpus) return held().on_gpus->signal(to, offset, value);
  held().on_hosts->signal(call, offset, value);
}

void Window::wait(Bytes offset, std::uint64_t at_least) const {
  const std::lock_guard lock(*held().core);
  const Region flag = local().slice(offset, sizeof at_least);
  if (reinterpret_cast<std::uintptr_t>(flag.data) % sizeof at_least != 0)
    throw Error(ErrorKind::invalid_input, "a signal needs an aligned address");
  const auto look = [&, gpu = held().on_gpus.get()] {
    if (gpu != nullptr) return gpu->read_flag(offset);
    return std::atomic_ref(*reinterpret_cast<std::uint64_t*>(flag.data)).load(std::memory_order_acquire);
  };
  Session& session = held().session();
  const Call call = held().core->next_call(CallKind::wait, {});
  const InCall in_call(session, call);
  session.wait(
      call, [&] { return look() >= at_least; },
      [&] { return "the flag is " + std::to_string(look()) + ", not " + std::to_string(at_least); });
}

}  // namespace waywiser
