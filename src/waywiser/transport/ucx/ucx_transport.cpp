#include "waywiser/transport/ucx/ucx_transport.hpp"

#include <sched.h>

#include <algorithm>
#include <deque>

#include "waywiser/base/error.hpp"
#include "waywiser/transport/peer_channel.hpp"
#include "waywiser/transport/ucx/current_gpu.hpp"
#include "waywiser/transport/ucx/ucx_roads.hpp"
#include "waywiser/transport/ucx/ucx_worker.hpp"

namespace waywiser {
namespace {

constexpr ucp_tag_t tag = 0x77617977;
constexpr Seconds connect_patience = 10;
constexpr Seconds producer_patience = 60;
constexpr unsigned turns_between_looks = 1024;

class UcxTransport : public Transport {
 public:
  UcxTransport(const Path& path, const UcxRoad& road, PeerChannel& peer)
      : name_(label(path) + " " + pair_text(path)),
        peer_(peer),
        context_(std::string(road.transports), std::string(road.devices)),
        worker_(context_) {}

  ~UcxTransport() override {
    for (Pending& pending : receives_) worker_.cancel(pending.request);
    if (!sends_.empty() || peer_.peer_ended()) worker_.abandon();
    for (const auto* list : {&sends_, &receives_})
      for (const Pending& pending : *list) ucx().request_free(pending.request);
  }

  // Both sides tell their addresses, or why they have none.
  void connect(const UcxRoad& road) {
    const Json theirs = peer_.exchange({{"ucx_address", worker_.address()}}, Deadline::in(connect_patience));
    const Json& address = require_array(theirs, "ucx_address", "message from the peer process");
    std::vector<std::uint8_t> bytes;
    for (const Json& value : address) {
      if (!value.is_number_unsigned() || value > 255)
        throw Error(ErrorKind::invalid_input, "message from the peer process: 'ucx_address' is no list of bytes");
      bytes.push_back(value.get<std::uint8_t>());
    }
    worker_.connect(bytes);
    const auto used = worker_.transports();
    if (!used.empty() && std::ranges::find(used, road.name) == used.end())
      throw Error(ErrorKind::unavailable, name_ + ": " + ucx_library().text() + " does not use " +
                                              std::string(road.name) + " between these processes");
  }

  void put(Region destination, ConstRegion source, Stream& stream) override {
    if (destination.bytes != source.bytes) check_put(destination, source);
    prepare(source.place, stream);
    const auto gpu = current_gpu();
    remember(sends_, worker_.send(source, tag), source.bytes);
  }

  void signal(Region, std::uint64_t value, Stream& stream) override {
    // Messages may complete out of order at the receiver; what was sent before must have arrived.
    finish_requests(sends_, Deadline::in(producer_patience));
    flush(Deadline::in(producer_patience));
    prepare(stream.place(), stream);
    const ConstRegion bytes{reinterpret_cast<const std::byte*>(&value), sizeof value, host(0)};
    remember(sends_, worker_.send(bytes, tag), bytes.bytes);
    finish_requests(sends_, Deadline::in(producer_patience));
  }

  bool two_sided() const override { return true; }

  void accept(Region destination, Stream& stream) override {
    prepare(destination.place, stream);
    const auto gpu = current_gpu();
    remember(receives_, worker_.receive(destination, tag), destination.bytes);
  }

  void finish(Stream&, Deadline deadline) override {
    const auto gpu = current_gpu();
    worker_.progress();
    finish_requests(receives_, deadline);
    finish_requests(sends_, deadline);
  }

 private:
  struct Pending {
    UcxRequest request;
    Bytes bytes;
  };

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

  static void remember(std::deque<Pending>& list, UcxRequest request, Bytes bytes) {
    if (request != nullptr) list.push_back({request, bytes});
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
        worker_.progress();
        if (turn % turns_between_looks == 0) look(deadline);
        continue;
      }
      list.pop_front();
      ucx().request_free(pending.request);
      check_ucx(status,
                std::string(receiving ? "receive " : "send ") + std::to_string(pending.bytes) + " bytes on " + name_);
      if (receiving) check_length(info, pending.bytes);
    }
  }

  void flush(Deadline deadline) {
    const UcxRequest request = worker_.flush();
    std::deque<Pending> list;
    remember(list, request, 0);
    finish_requests(list, deadline);
  }

  void look(Deadline deadline) {
    if (peer_.peer_ended()) throw Error(ErrorKind::io, name_ + ": the peer process ended");
    if (deadline.passed()) throw Error(ErrorKind::timeout, name_ + ": the peer process does not answer");
    ::sched_yield();
  }

  std::string name_;
  PeerChannel& peer_;
  UcxContext context_;
  UcxWorker worker_;
  std::deque<Pending> sends_, receives_;
  int ordinal_ = -1, gpu_index_ = -1, known_ordinal_ = -1;
};

std::optional<std::string> why_memory_does_not_fit(const Path& path, const UcxRoad& road, const Platform& platform) {
  const int gpus = (path.source.is_gpu() ? 1 : 0) + (path.destination.is_gpu() ? 1 : 0);
  const std::string name(road.name);
  if (gpus != 0 && platform.backend() == "virtual_gpu") return "UCX cannot reach the memory of a virtual GPU";
  if (gpus != 0 && road.memory == UcxRoad::Memory::host) return "UCX transport " + name + " is for host memory";
  if (gpus == 0 && road.memory != UcxRoad::Memory::host) return "UCX transport " + name + " is for GPU memory";
  if (gpus != 2 && road.memory == UcxRoad::Memory::gpu_pair) return "UCX transport " + name + " is between two GPUs";
  return {};
}

std::optional<std::string> why_not(const Path& path, const TransportContext& context) {
  const std::string name(path.parameter("transports"));
  const UcxRoad* road = find_ucx_road(name);
  if (road == nullptr) return "transports=" + name + " is not known here";
  if (path.processes != 2) return "UCX is used between two processes only";
  if (auto why = why_memory_does_not_fit(path, *road, context.platform)) return why;
  const UcxLibrary& library = ucx_library();
  if (!library.usable()) return library.why_not();
  const ucs_status_t status = UcxContext::try_transports(name, std::string(road->devices));
  if (status != UCS_OK)
    return library.text() + " has no transport '" + name + "' here (" + library.functions().status_string(status) + ")";
  return {};
}

Place works_on(const Path& path) {
  if (!path.source.is_gpu()) return path.source;
  return path.destination.is_gpu() ? host(0) : path.destination;
}

std::unique_ptr<Transport> open(const Path& path, const TransportContext& context) {
  if (context.peer == nullptr) throw Error(ErrorKind::invalid_input, label(path) + " needs a peer process");
  const UcxRoad& road = *find_ucx_road(path.parameter("transports"));
  auto transport = std::make_unique<UcxTransport>(path, road, *context.peer);
  transport->connect(road);
  return transport;
}

}  // namespace

Mechanism ucx_mechanism() {
  Mechanism row{"ucx", "messages through UCX, between two processes", why_not, works_on, open};
  row.two_sided = true;
  return row;
}

}  // namespace waywiser
