#include "waywiser/measure/peer_pair.hpp"

#include <algorithm>
#include <vector>

#include "waywiser/base/error.hpp"
#include "waywiser/base/timeout.hpp"
#include "waywiser/kernels/pattern.hpp"
#include "waywiser/measure/statistics.hpp"

namespace waywiser {
namespace {

constexpr Bytes small_copy = 8;
constexpr int rate_copies = 5;
constexpr int latency_copies = 50;
constexpr int samples = 5;

Deadline soon() { return Deadline::in(usual_timeout()); }

// Opens at the end of its scope at the latest: work that waits forever would keep its memory forever.
class Gate {
 public:
  Gate(Stream& host, Region flag, std::uint64_t turn) : host_(host), flag_(flag), turn_(turn) {}
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;
  ~Gate() { open(); }
  void open() noexcept {
    try {
      host_.write_value(flag_, turn_);
    } catch (const Error&) {  // the flag is 8 aligned bytes of host memory: nothing to throw for
    }
  }

 private:
  Stream& host_;
  Region flag_;
  std::uint64_t turn_;
};

// Two buffers on each side, so that both directions are independent.
class PeerPair {
 public:
  PeerPair(Platform& platform, int source, int destination, Bytes bytes)
      : here_{platform.allocate(gpu(source), bytes, Allocation::gpu),
              platform.allocate(gpu(source), bytes, Allocation::gpu)},
        there_{platform.allocate(gpu(destination), bytes, Allocation::gpu),
               platform.allocate(gpu(destination), bytes, Allocation::gpu)},
        gate_(platform.allocate(host(0), sizeof(std::uint64_t), Allocation::pinned)),
        forth_(platform.open_stream(gpu(source))),
        back_(platform.open_stream(gpu(destination))),
        host_(platform.open_stream(host(0))),
        start_(platform.create_timed_event(gpu(source))),
        end_(platform.create_timed_event(gpu(source))),
        back_end_(platform.create_timed_event(gpu(destination))) {
    host_->write_value(gate_.region(), 0);
  }

  void verify() {
    fill_pattern(*forth_, here_[0].region(), 1);
    fill_pattern(*back_, there_[0].region(), 2);
    forth_->synchronize(soon());
    back_->synchronize(soon());
    forth_->copy(there_[0].region(), here_[0].region());
    forth_->synchronize(soon());
    const Bytes wrong = count_mismatches(*back_, there_[0].region(), 1, soon());
    if (wrong != 0) throw Error(ErrorKind::corrupt, std::to_string(wrong) + " wrong bytes arrived");
  }

  // Device time per copy. `gated`: all copies are enqueued before the first starts, which hides the enqueueing; not
  // without peer access, where the driver may work on the host while it enqueues.
  Seconds device_time(Bytes bytes, int copies, bool both_ways, bool gated) {
    std::vector<Seconds> times;
    for (int sample = 0; sample < samples; ++sample) {
      Gate gate(*host_, gate_.region(), ++turn_);
      if (gated) forth_->wait_value(gate_.region(), turn_);
      forth_->record(*start_);
      if (both_ways) back_->wait(*start_);
      for (int i = 0; i < copies; ++i) {
        forth_->copy(there_[0].region().slice(0, bytes), here_[0].region().slice(0, bytes));
        if (both_ways) back_->copy(here_[1].region().slice(0, bytes), there_[1].region().slice(0, bytes));
      }
      if (both_ways) {
        back_->record(*back_end_);
        forth_->wait(*back_end_);
      }
      forth_->record(*end_);
      gate.open();
      forth_->synchronize(soon());
      times.push_back(end_->since(*start_) / copies);
    }
    return median(times);
  }

  Seconds host_time() {
    std::vector<Seconds> times;
    for (int i = 0; i < 2 * latency_copies; ++i) {
      const Seconds start = now_seconds();
      forth_->copy(there_[0].region().slice(0, small_copy), here_[0].region().slice(0, small_copy));
      forth_->synchronize(soon());
      times.push_back(now_seconds() - start);
    }
    return median(times);
  }

 private:
  Memory here_[2], there_[2], gate_;
  std::unique_ptr<Stream> forth_, back_, host_;
  std::unique_ptr<Event> start_, end_, back_end_;
  std::uint64_t turn_ = 0;
};

std::optional<BytesPerSecond> rate(Bytes bytes, Seconds seconds) {
  if (seconds <= 0) return {};
  return static_cast<double>(bytes) / seconds;
}

}  // namespace

PeerTimes time_peer_pair(Platform& platform, int source, int destination, Bytes bytes, bool peer_access) {
  if (source != destination && !platform.why_no_peer_access(source, destination))
    platform.set_peer_access(source, destination, peer_access);
  if (source != destination && !platform.why_no_peer_access(destination, source))
    platform.set_peer_access(destination, source, peer_access);
  PeerPair pair(platform, source, destination, std::max(bytes, small_copy));
  pair.verify();
  const bool gated = peer_access;
  PeerTimes times;
  times.one_way = rate(bytes, pair.device_time(bytes, rate_copies, false, gated));
  times.both_ways = rate(2 * bytes, pair.device_time(bytes, rate_copies, true, gated));
  times.latency_gpu = pair.device_time(small_copy, latency_copies, false, gated);
  times.latency_cpu = pair.host_time();
  return times;
}

}  // namespace waywiser
