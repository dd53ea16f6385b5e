#include "waywiser/transport/ucx/ucx_transport.hpp"

#include <sched.h>

#include <algorithm>
#include <deque>

#include "waywiser/base/error.hpp"
#include "waywiser/transport/peer_channel.hpp"
#include "waywiser/transport/split/split.hpp"
#include "waywiser/transport/ucx/current_gpu.hpp"
#include "waywiser/transport/ucx/ucx_roads.hpp"
#include "waywiser/transport/ucx/ucx_worker.hpp"

namespace waywiser {
namespace {

constexpr ucp_tag_t tag = 0x77617977;
constexpr Seconds connect_patience = 10;
constexpr Seconds producer_patience = 60;
constexpr unsigned turns_between_looks = 1024;
constexpr Bytes smallest_split = 64 << 10;

class UcxTransport : public Transport {
 public:
  UcxTransport(const Path& path, const std::vector<UcxRoad>& roads, PeerChannel& peer)
      : name_(label(path) + " " + pair_text(path)), peer_(peer), between_machines_(roads.front().between_machines) {
    for (const UcxRoad& road : roads) rails_.push_back(std::make_unique<Rail>(road));
    percents_ = roads.size() == 1 ? std::vector<int>{100} : split_percents(path, roads.size());
  }

  ~UcxTransport() override {
    for (Pending& pending : receives_) pending.rail->worker.cancel(pending.request);
    if (between_machines_ && (broken_ || !sends_.empty() || !receives_.empty() || peer_.peer_ended()))
      leave();
    else
      end();
  }

  void connect() {
    for (const auto& rail : rails_) connect(*rail);
  }

  void put(Region destination, ConstRegion source, Stream& stream) override {
    if (destination.bytes != source.bytes) check_put(destination, source);
    prepare(source.place, stream);
    const auto gpu = current_gpu();
    const std::vector<Bytes> shares = split_bytes(percents_, source.bytes);
    Bytes at = 0;
    for (std::size_t i = 0; i < rails_.size(); at += shares[i++])
      if (i == 0 || shares[i] != 0)
        remember(sends_, *rails_[i], rails_[i]->worker.send(source.slice(at, shares[i]), tag), shares[i]);
  }

  void signal(Region, std::uint64_t value, Stream& stream) override {
    // Messages may complete out of order at the receiver; what was sent before must have arrived.
    finish_requests(sends_, Deadline::in(producer_patience));
    flush(Deadline::in(producer_patience));
    prepare(stream.place(), stream);
    const ConstRegion bytes{reinterpret_cast<const std::byte*>(&value), sizeof value, host(0)};
    remember(sends_, *rails_.front(), rails_.front()->worker.send(bytes, tag), bytes.bytes);
    finish_requests(sends_, Deadline::in(producer_patience));
  }

  bool two_sided() const override { return true; }

  void accept(Region destination, Stream& stream) override {
    prepare(destination.place, stream);
    const auto gpu = current_gpu();
    const std::vector<Bytes> shares = split_bytes(percents_, destination.bytes);
    Bytes at = 0;
    for (std::size_t i = 0; i < rails_.size(); at += shares[i++])
      if (i == 0 || shares[i] != 0)
        remember(receives_, *rails_[i], rails_[i]->worker.receive(destination.slice(at, shares[i]), tag), shares[i]);
  }

  void finish(Stream&, Deadline deadline) override {
    const auto gpu = current_gpu();
    progress();
    finish_requests(receives_, deadline);
    finish_requests(sends_, deadline);
  }

 private:
  // Each on network devices of its own, with a share of every message.
  struct Rail {
    explicit Rail(const UcxRoad& way) : road(way), context(way), worker(context) {}
    UcxRoad road;
    UcxContext context;
    UcxWorker worker;
  };
  struct Pending {
    Rail* rail;
    UcxRequest request;
    Bytes bytes;
  };

  // Both sides tell their addresses, or why they have none.
  void connect(Rail& rail) {
    const Json theirs = peer_.exchange({{"ucx_address", rail.worker.address()}}, Deadline::in(connect_patience));
    const Json& address = require_array(theirs, "ucx_address", "message from the peer process");
    std::vector<std::uint8_t> bytes;
    for (const Json& value : address) {
      if (!value.is_number_unsigned() || value > 255)
        throw Error(ErrorKind::invalid_input, "message from the peer process: 'ucx_address' is no list of bytes");
      bytes.push_back(value.get<std::uint8_t>());
    }
    rail.worker.connect(bytes, between_machines_);
    const auto used = rail.worker.transports();
    const auto carries = [&](const std::string& transport) { return transport.starts_with(rail.road.name); };
    if (!used.empty() && std::ranges::none_of(used, carries))
      throw Error(ErrorKind::unavailable,
                  name_ + ": " + ucx_library().text() + " does not use " + rail.road.name + " between these processes");
  }

  void end() noexcept {
    if (!sends_.empty() || peer_.peer_ended())
      for (const auto& rail : rails_) rail->worker.abandon();
    for (const auto* list : {&sends_, &receives_})
      for (const Pending& pending : *list) ucx().request_free(pending.request);
  }

  // UCX that watches connections cannot give them up.
  void leave() noexcept {
    for (const auto& rail : rails_) {
      rail->worker.leave();
      rail->context.abandon();
    }
  }

  void progress() {
    for (const auto& rail : rails_) rail->worker.progress();
  }

  static const UcxFunctions& ucx() { return ucx_library().functions(); }

  void prepare(Place place, Stream& stream) {
    if (stream.place().is_gpu()) stream.synchronize(Deadline::in(producer_patience));
    if (place.is_gpu()) ordinal_ = cuda_ordinal(place.index);
  }

  int cuda_ordinal(int index) {
    if (index != gpu_index_) known_ordinal_ = cuda_ordinal_of(index);
    gpu_index_ = index;
    return known_ordinal_;
  }

  std::shared_ptr<void> current_gpu() const { return ordinal_ < 0 ? nullptr : make_gpu_current(ordinal_); }

  static void remember(std::deque<Pending>& list, Rail& rail, UcxRequest request, Bytes bytes) {
    if (request != nullptr) list.push_back({&rail, request, bytes});
  }

  void check_length(const ucp_tag_recv_info_t& info, Bytes expected) const {
    if (info.length != expected)
      throw Error(ErrorKind::corrupt, name_ + ": accepted " + std::to_string(expected) + " bytes, but " +
                                          std::to_string(info.length) + " were put");
  }

  void finish_requests(std::deque<Pending>& list, Deadline deadline) {
    for (unsigned turn = 1; !list.empty(); ++turn) {
      const Pending pending = list.front();
      ucp_tag_recv_info_t info{};
      const bool receiving = &list == &receives_;
      const ucs_status_t status =
          receiving ? ucx().tag_recv_request_test(pending.request, &info) : ucx().request_check_status(pending.request);
      if (status == UCS_INPROGRESS) {
        progress();
        if (turn % turns_between_looks == 0) look(deadline);
        continue;
      }
      list.pop_front();
      ucx().request_free(pending.request);
      broken_ = broken_ || status != UCS_OK;
      check_ucx(status,
                std::string(receiving ? "receive " : "send ") + std::to_string(pending.bytes) + " bytes on " + name_);
      if (receiving) check_length(info, pending.bytes);
    }
  }

  void flush(Deadline deadline) {
    std::deque<Pending> list;
    for (const auto& rail : rails_) remember(list, *rail, rail->worker.flush(), 0);
    finish_requests(list, deadline);
  }

  void look(Deadline deadline) {
    if (peer_.peer_ended()) throw Error(ErrorKind::io, name_ + ": the peer process ended");
    if (deadline.passed()) throw Error(ErrorKind::timeout, name_ + ": the peer process does not answer");
    ::sched_yield();
  }

  std::string name_;
  PeerChannel& peer_;
  const bool between_machines_;
  bool broken_ = false;
  std::vector<std::unique_ptr<Rail>> rails_;
  std::vector<int> percents_;
  std::deque<Pending> sends_, receives_;
  int ordinal_ = -1, gpu_index_ = -1, known_ordinal_ = -1;
};

std::optional<std::string> why_memory_does_not_fit(const Path& path, const UcxRoad& road, const Platform& platform) {
  const int gpus = (path.source.is_gpu() ? 1 : 0) + (path.destination.is_gpu() ? 1 : 0);
  const std::string& name = road.name;
  if (gpus != 0 && platform.backend() == "virtual_gpu") return "UCX cannot reach the memory of a virtual GPU";
  if (gpus != 0 && road.memory == UcxRoad::Memory::host) return "UCX transport " + name + " is for host memory";
  if (gpus == 0 && road.memory != UcxRoad::Memory::host && !road.between_machines)
    return "UCX transport " + name + " is for GPU memory";
  if (gpus != 2 && road.memory == UcxRoad::Memory::gpu_pair) return "UCX transport " + name + " is between two GPUs";
  return {};
}

std::optional<std::string> why_not_on(const UcxRoad& road) {
  const UcxLibrary& library = ucx_library();
  if (road.between_machines && road.devices.empty()) return "the two machines have no RDMA devices in one network";
  UcxRoad alone = road;
  if (!road.between_machines) alone.transports = road.name;
  const ucs_status_t status = UcxContext::try_road(alone);
  if (status == UCS_OK) return {};
  return library.text() + " has no transport '" + alone.transports + "' " +
         (road.between_machines ? "on " + road.devices : "here") + " (" + library.functions().status_string(status) +
         ")";
}

std::optional<std::string> why_not(const Path& path, const TransportContext& context) {
  const std::vector<UcxRoad> rails = ucx_rails(path);
  if (rails.empty()) return "transports=" + std::string(path.parameter("transports")) + " is not known here";
  if (path.processes != 2) return "UCX is used between two processes only";
  if (rails.size() > 1) split_percents(path, rails.size());
  if (auto why = why_memory_does_not_fit(path, rails.front(), context.platform)) return why;
  if (!ucx_library().usable()) return ucx_library().why_not();
  for (const UcxRoad& rail : rails)
    if (auto why = why_not_on(rail)) return why;
  return {};
}

Place works_on(const Path& path) {
  if (!path.source.is_gpu()) return path.source;
  return path.destination.is_gpu() ? host(0) : path.destination;
}

std::unique_ptr<Transport> open(const Path& path, const TransportContext& context) {
  if (context.peer == nullptr) throw Error(ErrorKind::invalid_input, label(path) + " needs a peer process");
  auto transport = std::make_unique<UcxTransport>(path, ucx_rails(path), *context.peer);
  transport->connect();
  return transport;
}

// A smaller message goes over one rail.
Bytes least_bytes(const Path& path) { return path.has("share") ? smallest_split : 0; }

}  // namespace

Mechanism ucx_mechanism() {
  Mechanism row{"ucx", "messages through UCX, between two processes", why_not, works_on, open};
  row.two_sided = true;
  row.least_bytes = least_bytes;
  return row;
}

}  // namespace waywiser
