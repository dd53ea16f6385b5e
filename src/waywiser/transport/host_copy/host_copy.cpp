#include "waywiser/transport/host_copy/host_copy.hpp"

#include <algorithm>
#include <cstring>

#include "waywiser/base/error.hpp"
#include "waywiser/transport/defaults.hpp"
#include "waywiser/transport/host_copy/nontemporal_copy.hpp"
#include "waywiser/transport/host_copy/thread_team.hpp"

namespace waywiser {
namespace {

constexpr int most_threads = 256;
// A thread with less to copy brings little even where cores talk fast, and costs half as much again where they do not.
constexpr Bytes least_share = defaults::host_copy_share;
constexpr Bytes page = 4096;

bool nontemporal(const Path& path) {
  const std::string_view stores = path.parameter("stores");
  if (stores != "temporal" && stores != "nontemporal")
    throw Error(ErrorKind::invalid_input, label(path) + ": parameter 'stores' must be temporal or nontemporal");
  return stores == "nontemporal";
}

class HostCopy : public Transport {
 public:
  explicit HostCopy(const Path& path)
      : nontemporal_(nontemporal(path)), team_(static_cast<int>(path.integer("threads", 1, most_threads))) {}

  void put(Region destination, ConstRegion source, Stream& stream) override {
    check_put(destination, source);
    std::byte* to = stream.reach(destination);
    const std::byte* from = stream.reach(source);
    const Bytes bytes = source.bytes;
    const Bytes shares = std::clamp<Bytes>(bytes / least_share, 1, static_cast<Bytes>(team_.members()));
    const Bytes length = (bytes / shares + page - 1) / page * page;
    team_.run(static_cast<int>(shares), [&](int share) {
      const Bytes begin = std::min(bytes, length * static_cast<Bytes>(share));
      const Bytes end = static_cast<Bytes>(share) + 1 == shares ? bytes : std::min(bytes, begin + length);
      copy(to + begin, from + begin, end - begin);
    });
  }

  void signal(Region flag, std::uint64_t value, Stream& stream) override { stream.write_value(flag, value); }

 private:
  void copy(std::byte* to, const std::byte* from, Bytes bytes) const {
    if (nontemporal_) {
      nontemporal_copy(to, from, bytes);
    } else if (bytes != 0) {
      std::memcpy(to, from, bytes);
    }
  }

  bool nontemporal_;
  ThreadTeam team_;
};

std::optional<std::string> why_not(const Path& path, const TransportContext&) {
  for (const Place place : {path.source, path.destination})
    if (place.is_gpu()) return "the host cannot touch the memory of " + text(place);
  path.integer("threads", 1, most_threads);
  return nontemporal(path) ? why_no_nontemporal_copy() : std::nullopt;
}

// With fewer than half as many shares as threads, half as many threads do; a vector that bypasses the cache has 64
// bytes.
Bytes least_bytes(const Path& path) {
  const auto threads = static_cast<Bytes>(path.integer("threads", 1, most_threads));
  return std::max<Bytes>(threads == 1 ? 0 : (threads / 2 + 1) * least_share, nontemporal(path) ? 64 : 0);
}

Place works_on(const Path& path) { return path.processes == 1 ? path.destination : path.source; }

std::unique_ptr<Transport> open(const Path& path, const TransportContext&) { return std::make_unique<HostCopy>(path); }

PathSteps steps(const Path& path, Bytes) {
  const std::int64_t threads = path.integer("threads", 1, most_threads);
  PathStep copy = cpu_copies({path.source}, {path.destination});
  if (threads > 1) copy.who = std::to_string(threads) + " threads";
  if (nontemporal(path)) copy.what = "copies past the caches";
  return {copy};
}

}  // namespace

Mechanism host_copy_mechanism() {
  return {"host_copy", "The CPU copies, by one or more threads.", why_not, works_on, open, steps, Bytes{1} << 62,
          least_bytes};
}

}  // namespace waywiser
