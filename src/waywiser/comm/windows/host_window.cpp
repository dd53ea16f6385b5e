#include "waywiser/comm/windows/host_window.hpp"

#include <array>
#include <cstring>

#include "waywiser/base/error.hpp"
#include "waywiser/comm/message/fault_point.hpp"

namespace waywiser {
namespace {

constexpr std::size_t longest_key = 488;

// An access to another rank's memory.
class OneSidedTransfer : public Activity {
 public:
  OneSidedTransfer(Session& session, UcxRequest request, const Call& call, std::uint32_t peer)
      : session_(session), request_(request), call_(call), peer_(peer) {}
  OneSidedTransfer(const OneSidedTransfer&) = delete;
  OneSidedTransfer& operator=(const OneSidedTransfer&) = delete;
  ~OneSidedTransfer() override {
    if (request_ != nullptr) session_.give_up(*this);
  }

  bool advance() override {
    const UcxFunctions& ucx = ucx_library().functions();
    const ucs_status_t status = ucx.request_check_status(request_);
    if (status == UCS_INPROGRESS) return false;
    ucx.request_free(std::exchange(request_, nullptr));
    session_.engine().ucx().check(status, text(call_));
    return true;
  }
  const Call& call() const override { return call_; }
  std::string progress_text() const override { return "not complete"; }
  void abandon() noexcept override {
    if (request_ != nullptr) session_.engine().ucx().give_up_one_sided(std::exchange(request_, nullptr), peer_);
  }

 private:
  Session& session_;
  UcxRequest request_;
  const Call call_;
  const std::uint32_t peer_;
};

// Waits until UCX has completed this request. `peer`: a rank of the session.
void finish(Session& session, void* request, const Call& call, std::uint32_t peer) {
  if (UCS_PTR_IS_ERR(request)) session.engine().ucx().check(UCS_PTR_STATUS(request), text(call));
  if (request == nullptr) return;
  OneSidedTransfer operation(session, request, call, peer);
  session.wait(operation);
}

}  // namespace

// The form in which it travels between ranks, in native byte order: all ranks of a group have one kind of processor.
struct HostWindow::Record {
  std::uint64_t address = 0, bytes = 0, key_bytes = 0;
  std::array<std::byte, longest_key> key{};
};

HostWindow::HostWindow(Session& session, const Members& members, Region local, RankExchange& exchange)
    : session_(session), members_(members), local_(local) {
  static_assert(sizeof(Record) == 512);
  const Record mine = map();
  std::vector<Record> all(static_cast<std::size_t>(members.size()));
  exchange.all_gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)));
  for (const Record& record : all) {
    if (record.key_bytes > longest_key) throw Error(ErrorKind::corrupt, "a rank has sent an invalid key");
    const auto end = record.key.begin() + static_cast<std::ptrdiff_t>(record.key_bytes);
    ranks_.push_back({record.address, record.bytes, {record.key.begin(), end}, nullptr});
  }
}

HostWindow::~HostWindow() {
  if (session_.is_forked()) return;
  const UcxFunctions& ucx = ucx_library().functions();
  for (Exposed& rank : ranks_)
    if (rank.opened != nullptr) ucx.rkey_destroy(rank.opened);
  if (mapped_ != nullptr) ucx.mem_unmap(session_.engine().ucx().worker().context(), mapped_);
}

HostWindow::Record HostWindow::map() {
  Record record{reinterpret_cast<std::uint64_t>(local_.data), local_.bytes, 0, {}};
  if (local_.bytes == 0) return record;
  const UcxFunctions& ucx = ucx_library().functions();
  ucp_mem_map_params_t parameters{};
  parameters.field_mask =
      UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH | UCP_MEM_MAP_PARAM_FIELD_MEMORY_TYPE;
  parameters.address = local_.data;
  parameters.length = local_.bytes;
  parameters.memory_type = UCS_MEMORY_TYPE_HOST;
  check_ucx(ucx.mem_map(session_.engine().ucx().worker().context(), &parameters, &mapped_), "expose memory");
  void* key = nullptr;
  std::size_t length = 0;
  check_ucx(ucx.rkey_pack(session_.engine().ucx().worker().context(), mapped_, &key, &length),
            "pack the key of memory");
  const bool fits = length <= longest_key;
  if (fits) std::memcpy(record.key.data(), key, length);
  ucx.rkey_buffer_release(key);
  if (!fits) throw Error(ErrorKind::unavailable, "UCX makes keys of " + std::to_string(length) + " bytes");
  record.key_bytes = length;
  return record;
}

std::pair<std::uint64_t, ucp_rkey_h> HostWindow::at(const Call& call, Bytes offset) {
  Exposed& exposed = ranks_[static_cast<std::size_t>(call.peer)];
  auto&& ucx = session_.engine().ucx();
  if (exposed.opened == nullptr && exposed.bytes != 0)
    ucx.check(
        ucx_library().functions().ep_rkey_unpack(ucx.endpoint(peer_of(call)), exposed.key.data(), &exposed.opened),
        "open the memory of rank " + std::to_string(call.peer));
  return {exposed.address + offset, exposed.opened};
}

// `begin(endpoint, address, key, parameters)` starts the UCX request.
template <typename Begin>
void HostWindow::transfer(const Call& call, Bytes offset, Bytes bytes, Begin begin) {
  const auto [address, key] = at(call, offset);
  const ucp_request_param_t parameters{};
  fault_point(ProtocolStep::put);
  if (bytes == 0) return;
  const std::uint32_t peer = peer_of(call);
  finish(session_, begin(session_.engine().ucx().endpoint(peer), address, key, &parameters), call, peer);
}

void HostWindow::put(const Call& call, Bytes offset, ConstRegion data) {
  transfer(call, offset, data.bytes, [&](auto endpoint, auto address, auto key, auto parameters) {
    return ucx_library().functions().put_nbx(endpoint, data.data, data.bytes, address, key, parameters);
  });
}

void HostWindow::get(const Call& call, Bytes offset, Region data) {
  transfer(call, offset, data.bytes, [&](auto endpoint, auto address, auto key, auto parameters) {
    return ucx_library().functions().get_nbx(endpoint, data.data, data.bytes, address, key, parameters);
  });
}

// Waits for earlier puts first. UCX's own fence may wait forever for a dead rank.
void HostWindow::signal(const Call& call, Bytes offset, std::uint64_t value) {
  const auto [address, key] = at(call, offset);
  const ucp_request_param_t parameters{};
  const std::uint32_t peer = peer_of(call);
  flush_puts(session_, call, peer);
  fault_point(ProtocolStep::flag);
  finish(session_,
         ucx_library().functions().put_nbx(session_.engine().ucx().endpoint(peer), &value, sizeof value, address, key,
                                           &parameters),
         call, peer);
}

void flush_puts(Session& session, const Call& call, std::uint32_t peer) {
  const ucp_request_param_t parameters{};
  finish(session, ucx_library().functions().worker_flush_nbx(session.engine().ucx().worker().get(), &parameters), call,
         peer);
}

}  // namespace waywiser
