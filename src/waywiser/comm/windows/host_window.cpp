#include "waywiser/comm/windows/host_window.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "waywiser/base/error.hpp"
#include "waywiser/comm/message/fault_point.hpp"

namespace waywiser {
namespace {

constexpr std::size_t longest_key = 488;

// An access to another rank's memory.
class OneSidedTransfer : public Activity {
 public:
  OneSidedTransfer(Session& session, void* access, const Call& call, std::uint32_t peer)
      : session_(session), access_(access), call_(call), peer_(peer) {}
  OneSidedTransfer(const OneSidedTransfer&) = delete;
  OneSidedTransfer& operator=(const OneSidedTransfer&) = delete;
  ~OneSidedTransfer() override {
    if (access_ != nullptr) session_.give_up(*this);
  }

  bool advance() override { return session_.engine().ucx().is_over(access_, call_); }
  const Call& call() const override { return call_; }
  std::string progress_text() const override { return "not complete"; }
  void abandon() noexcept override {
    if (access_ != nullptr) session_.engine().ucx().give_up_one_sided(std::exchange(access_, nullptr), peer_);
  }

 private:
  Session& session_;
  void* access_;
  const Call call_;
  const std::uint32_t peer_;
};

// `peer`: a rank of the session.
void finish(Session& session, void* access, const Call& call, std::uint32_t peer) {
  if (access == nullptr) return;
  OneSidedTransfer operation(session, access, call, peer);
  session.wait(operation);
}

}  // namespace

// The form in which it travels between ranks, in native byte order: all ranks of a group have one kind of processor.
struct HostWindow::Record {
  std::uint64_t address = 0, bytes = 0, key_bytes = 0;
  std::array<std::byte, longest_key> key{};
};

HostWindow::HostWindow(Session& session, const Members& members, Region local, RankExchange& exchange)
    : session_(session), members_(members) {
  static_assert(sizeof(Record) == 512);
  const Record mine = expose(local);
  std::vector<Record> all(static_cast<std::size_t>(members.size()));
  exchange.all_gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)));
  for (const Record& record : all) {
    if (record.key_bytes > longest_key) throw Error(ErrorKind::corrupt, "a rank has sent an invalid key");
    const auto end = record.key.begin() + static_cast<std::ptrdiff_t>(record.key_bytes);
    ranks_.push_back({record.address, record.bytes, {record.key.begin(), end}, nullptr});
  }
}

// A forked process leaves UCX as it is.
HostWindow::~HostWindow() {
  if (!session_.is_forked()) return;
  for (Exposed& rank : ranks_) static_cast<void>(rank.opened.release());
  static_cast<void>(mine_.release());
}

HostWindow::Record HostWindow::expose(Region local) {
  Record record{reinterpret_cast<std::uint64_t>(local.data), local.bytes, 0, {}};
  if (local.bytes == 0) return record;
  mine_ = session_.engine().ucx().expose(local);
  const std::vector<std::byte> key = mine_->key();
  if (key.size() > longest_key)
    throw Error(ErrorKind::unavailable, "UCX makes keys of " + std::to_string(key.size()) + " bytes");
  std::ranges::copy(key, record.key.begin());
  record.key_bytes = key.size();
  return record;
}

HostWindow::Exposed& HostWindow::opened(const Call& call) {
  Exposed& there = ranks_[static_cast<std::size_t>(call.peer)];
  if (there.opened == nullptr && there.bytes != 0)
    there.opened = session_.engine().ucx().open_memory(peer_of(call), there.key);
  return there;
}

void HostWindow::put(const Call& call, Bytes offset, ConstRegion data) {
  const Exposed& there = opened(call);
  fault_point(ProtocolStep::put);
  if (data.bytes == 0) return;
  const std::uint32_t peer = peer_of(call);
  finish(session_, session_.engine().ucx().put(*there.opened, there.address + offset, data, call, peer), call, peer);
}

void HostWindow::get(const Call& call, Bytes offset, Region data) {
  const Exposed& there = opened(call);
  fault_point(ProtocolStep::put);
  if (data.bytes == 0) return;
  const std::uint32_t peer = peer_of(call);
  finish(session_, session_.engine().ucx().get(*there.opened, there.address + offset, data, call, peer), call, peer);
}

// Waits for earlier puts first. UCX's own fence may wait forever for a dead rank.
void HostWindow::signal(const Call& call, Bytes offset, std::uint64_t value) {
  const Exposed& there = opened(call);
  const std::uint32_t peer = peer_of(call);
  flush_puts(session_, call, peer);
  fault_point(ProtocolStep::flag);
  const ConstRegion data{reinterpret_cast<const std::byte*>(&value), sizeof value, host(0)};
  finish(session_, session_.engine().ucx().put(*there.opened, there.address + offset, data, call, peer), call, peer);
}

void flush_puts(Session& session, const Call& call, std::uint32_t peer) {
  finish(session, session.engine().ucx().flush_puts(call), call, peer);
}

}  // namespace waywiser
