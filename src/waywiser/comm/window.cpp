#include "waywiser/comm/window.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>

#include "waywiser/base/error.hpp"
#include "waywiser/comm/group.hpp"

namespace waywiser {
namespace {

constexpr std::size_t longest_key = 488;

// As it travels between the ranks. Ranks of one group have one kind of processor: native byte order.
struct Record {
  std::uint64_t address = 0, bytes = 0, key_bytes = 0;
  std::array<std::byte, longest_key> key{};
};
static_assert(sizeof(Record) == 512);

std::span<std::byte> raw(std::span<Record> records) { return std::as_writable_bytes(records); }

}  // namespace

struct Window::Exposed {
  std::uint64_t address = 0;
  Bytes bytes = 0;
  std::vector<std::byte> key;
  ucp_rkey_h opened = nullptr;
};

struct Window::State {
  std::shared_ptr<Session> session;
  std::shared_ptr<const Members> members;
  Region local;
  ucp_mem_h mapped = nullptr;
  std::vector<Exposed> ranks;

  State(std::shared_ptr<Session> owner, std::shared_ptr<const Members> group, Region memory)
      : session(std::move(owner)), members(std::move(group)), local(memory) {}
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    const UcxFunctions& ucx = ucx_library().functions();
    for (Exposed& rank : ranks)
      if (rank.opened != nullptr) ucx.rkey_destroy(rank.opened);
    if (mapped != nullptr) ucx.mem_unmap(session->engine().context(), mapped);
  }

  Record map();
  // The remote address, and the key that opens it to this rank.
  std::pair<std::uint64_t, ucp_rkey_h> at(int rank, Bytes offset, Bytes length);
};

Record Window::State::map() {
  Record record{reinterpret_cast<std::uint64_t>(local.data), local.bytes, 0, {}};
  if (local.bytes == 0) return record;
  const UcxFunctions& ucx = ucx_library().functions();
  ucp_mem_map_params_t parameters{};
  parameters.field_mask =
      UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH | UCP_MEM_MAP_PARAM_FIELD_MEMORY_TYPE;
  parameters.address = local.data;
  parameters.length = local.bytes;
  parameters.memory_type = UCS_MEMORY_TYPE_HOST;
  check_ucx(ucx.mem_map(session->engine().context(), &parameters, &mapped), "expose memory");
  void* key = nullptr;
  std::size_t length = 0;
  check_ucx(ucx.rkey_pack(session->engine().context(), mapped, &key, &length), "pack the key of memory");
  const bool fits = length <= longest_key;
  if (fits) std::memcpy(record.key.data(), key, length);
  ucx.rkey_buffer_release(key);
  if (!fits) throw Error(ErrorKind::unavailable, "UCX makes keys of " + std::to_string(length) + " bytes");
  record.key_bytes = length;
  return record;
}

std::pair<std::uint64_t, ucp_rkey_h> Window::State::at(int rank, Bytes offset, Bytes length) {
  if (rank < 0 || rank >= members->size())
    throw Error(ErrorKind::invalid_input, "the window has no rank " + std::to_string(rank));
  Exposed& exposed = ranks[static_cast<std::size_t>(rank)];
  if (offset > exposed.bytes || length > exposed.bytes - offset)
    throw Error(ErrorKind::invalid_input, "bytes " + std::to_string(offset) + " to " + std::to_string(offset + length) +
                                              " are not within the " + std::to_string(exposed.bytes) + " that rank " +
                                              std::to_string(rank) + " has exposed");
  if (exposed.opened == nullptr && exposed.bytes != 0)
    check_ucx(ucx_library().functions().ep_rkey_unpack(session->engine().endpoint(members->peer(rank)),
                                                       exposed.key.data(), &exposed.opened),
              "open the memory of rank " + std::to_string(rank));
  return {exposed.address + offset, exposed.opened};
}

Window::Window(std::unique_ptr<State> state) : state_(std::move(state)) {}
Window::Window(Window&& other) noexcept = default;
Window& Window::operator=(Window&& other) noexcept = default;
Window::~Window() = default;

Region Window::local() const noexcept { return state_->local; }
Bytes Window::bytes_of(int rank) const { return state_->ranks.at(static_cast<std::size_t>(rank)).bytes; }

Window Group::expose(Region memory) {
  if (memory.place.is_gpu()) throw Error(ErrorKind::unavailable, "GPU memory cannot be exposed yet");
  auto state = std::make_unique<Window::State>(session_, members_, memory);
  Record mine = state->map();
  std::vector<Record> all(static_cast<std::size_t>(size()));
  all_gather(raw({&mine, 1}), raw(all));
  for (const Record& record : all) {
    if (record.key_bytes > longest_key) throw Error(ErrorKind::corrupt, "a rank has sent a key that is none");
    state->ranks.push_back({record.address,
                            record.bytes,
                            {record.key.begin(), record.key.begin() + static_cast<std::ptrdiff_t>(record.key_bytes)},
                            nullptr});
  }
  return Window(std::move(state));
}

// Until UCX says that this request is complete.
void Group::finish(void* request, const Call& call) {
  const UcxFunctions& ucx = ucx_library().functions();
  if (UCS_PTR_IS_ERR(request)) check_ucx(UCS_PTR_STATUS(request), text(call));
  if (request == nullptr) return;
  ucs_status_t status = UCS_INPROGRESS;
  session_->wait(
      call, [&] { return (status = ucx.request_check_status(request)) != UCS_INPROGRESS; },
      [] { return std::string("not complete"); });
  ucx.request_free(request);
  check_ucx(status, text(call));
}

void Group::put(ConstRegion data, const Window& window, int to, Bytes offset) {
  const auto [address, key] = window.state_->at(to, offset, data.bytes);
  const Call call = next_call(CallKind::put, {data, DataType::uint8}, to);
  session_->begin(call);
  const ucp_request_param_t parameters{};
  if (data.bytes != 0)
    finish(ucx_library().functions().put_nbx(session_->engine().endpoint(members_->peer(to)), data.data, data.bytes,
                                             address, key, &parameters),
           call);
  session_->end();
}

void Group::get(Region data, const Window& window, int from, Bytes offset) {
  const auto [address, key] = window.state_->at(from, offset, data.bytes);
  const Call call = next_call(CallKind::get, {data, DataType::uint8}, from);
  session_->begin(call);
  const ucp_request_param_t parameters{};
  if (data.bytes != 0)
    finish(ucx_library().functions().get_nbx(session_->engine().endpoint(members_->peer(from)), data.data, data.bytes,
                                             address, key, &parameters),
           call);
  session_->end();
}

void Group::signal(const Window& window, int to, Bytes offset, std::uint64_t value) {
  if (offset % sizeof value != 0) throw Error(ErrorKind::invalid_input, "a signal needs an aligned offset");
  const auto [address, key] = window.state_->at(to, offset, sizeof value);
  const Call call = next_call(CallKind::signal, {}, to);
  session_->begin(call);
  check_ucx(ucx_library().functions().worker_fence(session_->engine().worker()), "keep puts in order");
  const ucp_request_param_t parameters{};
  finish(ucx_library().functions().put_nbx(session_->engine().endpoint(members_->peer(to)), &value, sizeof value,
                                           address, key, &parameters),
         call);
  session_->end();
}

void Group::wait(const Window& window, Bytes offset, std::uint64_t at_least) {
  const Region flag = window.local().slice(offset, sizeof at_least);
  if (reinterpret_cast<std::uintptr_t>(flag.data) % sizeof at_least != 0)
    throw Error(ErrorKind::invalid_input, "a signal needs an aligned address");
  const std::atomic_ref<std::uint64_t> value(*reinterpret_cast<std::uint64_t*>(flag.data));
  const Call call = next_call(CallKind::wait, {}, -1);
  session_->begin(call);
  session_->wait(
      call, [&] { return value.load(std::memory_order_acquire) >= at_least; },
      [&] { return "the flag is " + std::to_string(value.load()) + ", not " + std::to_string(at_least); });
  session_->end();
}

void Group::flush() {
  const Call call = next_call(CallKind::put, {}, -1);
  session_->begin(call);
  const ucp_request_param_t parameters{};
  finish(ucx_library().functions().worker_flush_nbx(session_->engine().worker(), &parameters), call);
  session_->end();
}

}  // namespace waywiser
