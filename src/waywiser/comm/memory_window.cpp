#include "waywiser/comm/memory_window.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstring>
#include <utility>

#include "waywiser/base/error.hpp"
#include "waywiser/comm/exposed_memory.hpp"
#include "waywiser/comm/fault_point.hpp"
#include "waywiser/comm/gpu_window.hpp"
#include "waywiser/comm/group.hpp"
#include "waywiser/comm/handle_exchange.hpp"

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

// One that no rank has in use; 0: there is none.
unsigned free_slot(Group& group, const ExposedMemory& exposed) {
  const std::uint32_t mine = exposed.in_use();
  std::vector<std::uint32_t> all(static_cast<std::size_t>(group.size()));
  group.all_gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)));
  std::uint32_t in_use = 1;
  for (const std::uint32_t each : all) in_use |= each;
  const auto slot = static_cast<unsigned>(std::countr_one(in_use));
  return slot <= ExposedMemory::slots ? slot : 0;
}

// An access to another rank's memory.
class OneSided : public Activity {
 public:
  OneSided(Session& session, UcxRequest request, const Call& call, std::uint32_t peer)
      : session_(session), request_(request), call_(call), peer_(peer) {}
  OneSided(const OneSided&) = delete;
  OneSided& operator=(const OneSided&) = delete;
  ~OneSided() override {
    if (request_ != nullptr) session_.give_up(*this);
  }

  bool advance() override {
    const UcxFunctions& ucx = ucx_library().functions();
    const ucs_status_t status = ucx.request_check_status(request_);
    if (status == UCS_INPROGRESS) return false;
    ucx.request_free(std::exchange(request_, nullptr));
    session_.engine().check(status, text(call_));
    return true;
  }
  const Call& call() const override { return call_; }
  std::string progress_text() const override { return "not complete"; }
  void abandon() noexcept override {
    if (request_ != nullptr) session_.engine().give_up_one_sided(std::exchange(request_, nullptr), peer_);
  }

 private:
  Session& session_;
  UcxRequest request_;
  const Call call_;
  const std::uint32_t peer_;
};

void check_host(Place place) {
  if (place.is_gpu())
    throw Error(ErrorKind::unavailable,
                "between " + text(place) + " and a window of host memory: copy to the host first");
}

}  // namespace

struct MemoryWindow::Exposed {
  std::uint64_t address = 0;
  Bytes bytes = 0;
  std::vector<std::byte> key;
  ucp_rkey_h opened = nullptr;
};

struct MemoryWindow::State {
  std::shared_ptr<Session> session;
  std::shared_ptr<const Members> members;
  Region local;
  ucp_mem_h mapped = nullptr;
  std::vector<Exposed> ranks;
  std::shared_ptr<GpuWindow> on_gpu;  // instead of the two
  std::shared_ptr<ExposedMemory> shown_in;
  unsigned slot = 0;  // of it; 0: none

  State(std::shared_ptr<Session> owner, std::shared_ptr<const Members> group, Region memory)
      : session(std::move(owner)), members(std::move(group)), local(memory) {}
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    if (session->is_forked()) return;
    if (slot != 0) shown_in->remove(slot);
    const UcxFunctions& ucx = ucx_library().functions();
    for (Exposed& rank : ranks)
      if (rank.opened != nullptr) ucx.rkey_destroy(rank.opened);
    if (mapped != nullptr) ucx.mem_unmap(session->engine().context(), mapped);
  }

  Record map();
  void show_in(std::shared_ptr<ExposedMemory> all, unsigned in_slot);
  void check(int rank, Bytes offset, Bytes length) const;
  void check_access(int rank, Bytes offset, Bytes length) const;
  // The remote address, and the key that opens it to this rank.
  std::pair<std::uint64_t, ucp_rkey_h> at(int rank, Bytes offset, Bytes length);
};

Record MemoryWindow::State::map() {
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

void MemoryWindow::State::show_in(std::shared_ptr<ExposedMemory> all, unsigned in_slot) {
  ExposedMemory::Window window{{}, on_gpu};
  for (int rank = 0; rank < members->size(); ++rank) window.ranks.push_back(on_gpu->at(rank));
  shown_in = std::move(all);
  shown_in->add(in_slot, std::move(window));
  slot = in_slot;
}

void MemoryWindow::State::check(int rank, Bytes offset, Bytes length) const {
  if (rank < 0 || rank >= members->size())
    throw Error(ErrorKind::invalid_input, "the window has no rank " + std::to_string(rank));
  const Bytes bytes = ranks[static_cast<std::size_t>(rank)].bytes;
  if (offset > bytes || length > bytes - offset)
    throw Error(ErrorKind::invalid_input, "bytes " + std::to_string(offset) + " to " + std::to_string(offset + length) +
                                              " are not within the " + std::to_string(bytes) + " that rank " +
                                              std::to_string(rank) + " has exposed");
}

// Of what is to be put there, or taken from there.
void MemoryWindow::State::check_access(int rank, Bytes offset, Bytes length) const {
  check(rank, offset, length);
  if (session->engine().is_encrypted(members->peer(rank)))
    throw Error(ErrorKind::unavailable, "put, get and signal are not encrypted, and rank " + std::to_string(rank) +
                                            " is on another machine: use messages, or do without WAYWISER_ENCRYPT=1");
}

std::pair<std::uint64_t, ucp_rkey_h> MemoryWindow::State::at(int rank, Bytes offset, Bytes length) {
  check(rank, offset, length);
  Exposed& exposed = ranks[static_cast<std::size_t>(rank)];
  if (exposed.opened == nullptr && exposed.bytes != 0)
    session->engine().check(ucx_library().functions().ep_rkey_unpack(session->engine().endpoint(members->peer(rank)),
                                                                     exposed.key.data(), &exposed.opened),
                            "open the memory of rank " + std::to_string(rank));
  return {exposed.address + offset, exposed.opened};
}

MemoryWindow::MemoryWindow(std::unique_ptr<State> state) : state_(std::move(state)) {}
MemoryWindow::MemoryWindow(MemoryWindow&& other) noexcept = default;
MemoryWindow& MemoryWindow::operator=(MemoryWindow&& other) noexcept = default;
MemoryWindow::~MemoryWindow() = default;

Region MemoryWindow::local() const noexcept { return state_->local; }
Bytes MemoryWindow::bytes_of(int rank) const {
  state_->check(rank, 0, 0);
  return state_->ranks[static_cast<std::size_t>(rank)].bytes;
}

MemoryWindow Group::expose(Region memory) {
  if (memory.place.is_gpu())
    throw Error(ErrorKind::invalid_input, "GPU memory is exposed as a Memory, which has a handle");
  auto state = std::make_unique<MemoryWindow::State>(session_, members_, memory);
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
  return MemoryWindow(std::move(state));
}

MemoryWindow Group::expose(const Memory& memory) {
  const Region local = memory.region();
  if (!local.place.is_gpu()) return expose(local);
  const Call call = next_call(CallKind::expose, {local, DataType::uint8}, -1);
  session_->begin(call);
  const MemoryHandle mine = session_->platform().export_memory(memory);
  const std::vector<MemoryHandle> all = exchange_handles(*this, *session_, *members_, call, mine);
  const unsigned slot = free_slot(*this, *exposed_);
  auto state = std::make_unique<MemoryWindow::State>(session_, members_, local);
  for (const MemoryHandle& handle : all) state->ranks.push_back({0, handle.bytes, {}, nullptr});
  state->on_gpu = std::make_shared<GpuWindow>(*session_, local, rank(), all);
  if (slot != 0) state->show_in(exposed_, slot);
  session_->end();
  return MemoryWindow(std::move(state));
}

// Until UCX says that this request is complete. `peer`: a rank of the session.
void Group::finish(void* request, const Call& call, std::uint32_t peer) {
  if (UCS_PTR_IS_ERR(request)) session_->engine().check(UCS_PTR_STATUS(request), text(call));
  if (request == nullptr) return;
  OneSided operation(*session_, request, call, peer);
  session_->wait(operation);
}

void Group::put(ConstRegion data, const MemoryWindow& window, int to, Bytes offset) {
  window.state_->check_access(to, offset, data.bytes);
  const Call call = next_call(CallKind::put, {data, DataType::uint8}, to);
  session_->begin(call);
  if (window.state_->on_gpu) {
    window.state_->on_gpu->put(to, offset, data);
    return session_->end();
  }
  check_host(data.place);
  const auto [address, key] = window.state_->at(to, offset, data.bytes);
  const ucp_request_param_t parameters{};
  fault_point(ProtocolStep::put);
  if (data.bytes != 0)
    finish(ucx_library().functions().put_nbx(session_->engine().endpoint(members_->peer(to)), data.data, data.bytes,
                                             address, key, &parameters),
           call, members_->peer(to));
  session_->end();
}

void Group::get(Region data, const MemoryWindow& window, int from, Bytes offset) {
  window.state_->check_access(from, offset, data.bytes);
  const Call call = next_call(CallKind::get, {data, DataType::uint8}, from);
  session_->begin(call);
  if (window.state_->on_gpu) {
    window.state_->on_gpu->get(from, offset, data);
    return session_->end();
  }
  check_host(data.place);
  const auto [address, key] = window.state_->at(from, offset, data.bytes);
  const ucp_request_param_t parameters{};
  fault_point(ProtocolStep::put);
  if (data.bytes != 0)
    finish(ucx_library().functions().get_nbx(session_->engine().endpoint(members_->peer(from)), data.data, data.bytes,
                                             address, key, &parameters),
           call, members_->peer(from));
  session_->end();
}

void Group::signal(const MemoryWindow& window, int to, Bytes offset, std::uint64_t value) {
  if (offset % sizeof value != 0) throw Error(ErrorKind::invalid_input, "a signal needs an aligned offset");
  window.state_->check_access(to, offset, sizeof value);
  const Call call = next_call(CallKind::signal, {}, to);
  session_->begin(call);
  if (window.state_->on_gpu) {
    window.state_->on_gpu->signal(to, offset, value);
    return session_->end();
  }
  const auto [address, key] = window.state_->at(to, offset, sizeof value);
  const ucp_request_param_t parameters{};
  // Puts come first. UCX's own fence may wait for ever, for a rank that is gone.
  finish(ucx_library().functions().worker_flush_nbx(session_->engine().worker(), &parameters), call,
         members_->peer(to));
  fault_point(ProtocolStep::flag);
  finish(ucx_library().functions().put_nbx(session_->engine().endpoint(members_->peer(to)), &value, sizeof value,
                                           address, key, &parameters),
         call, members_->peer(to));
  session_->end();
}

void Group::wait(const MemoryWindow& window, Bytes offset, std::uint64_t at_least) {
  const Region flag = window.local().slice(offset, sizeof at_least);
  if (reinterpret_cast<std::uintptr_t>(flag.data) % sizeof at_least != 0)
    throw Error(ErrorKind::invalid_input, "a signal needs an aligned address");
  const auto look = [&, gpu = window.state_->on_gpu.get()] {
    if (gpu != nullptr) return gpu->read_flag(offset);
    return std::atomic_ref(*reinterpret_cast<std::uint64_t*>(flag.data)).load(std::memory_order_acquire);
  };
  const Call call = next_call(CallKind::wait, {}, -1);
  session_->begin(call);
  session_->wait(
      call, [&] { return look() >= at_least; },
      [&] { return "the flag is " + std::to_string(look()) + ", not " + std::to_string(at_least); });
  session_->end();
}

void Group::flush() {
  const Call call = next_call(CallKind::put, {}, -1);
  session_->begin(call);
  const ucp_request_param_t parameters{};
  finish(ucx_library().functions().worker_flush_nbx(session_->engine().worker(), &parameters), call,
         members_->peer(rank()));
  session_->end();
}

}  // namespace waywiser
