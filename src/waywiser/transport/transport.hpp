#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "waywiser/device/platform.hpp"
#include "waywiser/device/region.hpp"
#include "waywiser/device/stream.hpp"
#include "waywiser/path/path.hpp"
#include "waywiser/transport/step.hpp"

namespace waywiser {

class PeerChannel;

// Moves bytes along one path. Calls only enqueue on `stream`, which completes them in order. Regions, stream and the
// transport itself must outlive the work. One thread at a time may use a Transport.
class Transport {
 public:
  virtual ~Transport() = default;
  // `destination` is local memory or, for one-sided mechanisms with processes == 2, the peer's memory as opened here.
  // Zero bytes is a valid put. Throws invalid_input like check_put.
  virtual void put(Region destination, ConstRegion source, Stream& stream) = 0;
  // After all puts enqueued before it have arrived, `flag` (8 bytes, aligned, at the destination) holds `value`.
  virtual void signal(Region flag, std::uint64_t value, Stream& stream) = 0;
  // Waits until every put, signal and accept so far has completed: sources may be reused, and accepted messages, or
  // puts of a one-sided mechanism, have arrived. Throws timeout, or the first error of the work.
  virtual void finish(Stream& stream, Deadline deadline) { stream.synchronize(deadline); }
  // Two-sided mechanisms (UCX): the owner of the destination must accept each put, in order, with the same size; the
  // address given to put() is ignored. One-sided mechanisms do not override these.
  virtual bool two_sided() const { return false; }
  virtual void accept(Region /*destination*/, Stream& /*stream*/) {}
  // After finish(): leaves nothing running on a device until the next put, so that other work is not disturbed.
  virtual void rest() {}
};

// What a mechanism may need in addition to the path.
struct TransportContext {
  Platform& platform;
  PeerChannel* peer = nullptr;  // the other process, when path.processes == 2
  // The limit of each wait inside put, signal and accept: for a stream's work, or until messages are accepted.
  Seconds patience = 60;
  // The limit for the two ends of a connection to reach each other.
  Seconds connect_patience = 10;
  // The program puts again and again: what stays on a GPU to serve that is started by the first put.
  bool repeats = false;
};

// The other process. Throws invalid_input if there is none.
PeerChannel& peer_of(const Path& path, const TransportContext& context);

struct Mechanism {
  std::string_view name;     // "copy_engine"
  std::string_view summary;  // a sentence, for people
  // Empty: usable. The text completes "copy_engine: ..." for people.
  std::optional<std::string> (*why_unavailable)(const Path&, const TransportContext&);
  // The stream given to put() must be on this place (the GPU that works, or the host).
  Place (*works_on)(const Path&);
  // Between two processes both sides open the same path; throws unavailable, device or timeout.
  std::unique_ptr<Transport> (*open)(const Path&, const TransportContext&);
  // What happens on the way of so many bytes, in order. Throws invalid_input as opening would.
  PathSteps (*steps)(const Path&, Bytes);
  // Above this size the mechanism is never worthwhile: it is neither measured nor chosen there.
  Bytes most_bytes = Bytes{1} << 62;
  // Below this size the path equals one with a smaller parameter: only that one is measured and chosen there.
  Bytes (*least_bytes)(const Path&) = nullptr;
  // Whether its transports between two processes are two-sided; asked before one is open.
  bool two_sided = false;
  // It encrypts, which takes time: it is chosen only on request.
  bool encrypts = false;
  // Within a machine: the bytes go through host memory, and the destination's own GPU writes them.
  bool through_host = false;
};

// On equal cost the earlier row wins.
std::span<const Mechanism> mechanisms();
// nullptr if there is no such row.
const Mechanism* find_mechanism(std::string_view name);

// Whether both processes take part in each put of this path. False for an unknown mechanism.
bool is_two_sided(const Path& path);
// Whether one process runs each put of this path alone, all of it on `worker`. False for an unknown mechanism.
bool runs_alone_on(const Path& path, Place worker);
// False for an unknown mechanism.
bool encrypts(const Path& path);
// For paths from outside: also returns a reason for an unknown mechanism.
std::optional<std::string> why_unavailable(const Path& path, const TransportContext& context);
// Throws unavailable with why_unavailable().
std::unique_ptr<Transport> open_transport(const Path& path, const TransportContext& context);

}  // namespace waywiser
