#include <algorithm>

#include "waywiser/sim/models.hpp"

// T(n) = host.copy_start + n / (s rate) + min(1, s - 1) host.thread_start + (s - 1) host.thread_each
//   s = min(threads, cores, n / host.thread_bytes) threads, at least 1, have a share each; the copy starts them and
//   waits for them.
// A thread's rate follows from what it goes through again and again, w = 2 n slots / s bytes: host.near_rate up to a
// core's first cache; at host.cache_rate up to half of its second cache of c bytes. From there on a share f comes from
// memory at host.copy_rate: f = 2/3 (w / c - 1/2) up to w = c, and f = 1 - 2/3 c / w beyond. A store that is not in a
// cache is read first, so that n bytes are 3 f n over the memory, which all threads share: from w = c on, never more
// than its rate. Stores past the caches (nontemporal) are 2 n, host.past_rate a thread, and end with a fence. Caches
// that cores share are not modelled: what is beyond the second cache is taken for memory's.

namespace waywiser::sim {
namespace {

struct Copy {
  bool past_caches;
  NodeModel::Caches caches;
  double threads, each_again;  // bytes of a thread's working set

  explicit Copy(const TimedTransfer& transfer)
      : past_caches(transfer.path.one_of("stores", {"temporal", "nontemporal"}) == "nontemporal"),
        caches(transfer.node().caches(transfer.from.device)) {
    const auto bytes = static_cast<double>(transfer.bytes);
    const int cores = transfer.node().cores();
    const auto most = static_cast<double>(std::min<std::int64_t>(transfer.path.integer("threads", 1, 256), cores));
    threads = std::clamp(bytes / transfer.cost("host.thread_bytes"), 1.0, most);
    each_again = 2 * bytes * transfer.slots / threads;
  }

  double from_memory() const {
    if (past_caches) return 1;
    const double filled = each_again / caches.second;
    return filled > 1 ? 1 - 2 / (3 * filled) : std::max(0.0, (2 * filled - 1) / 3);
  }
  BytesPerSecond rate(const TimedTransfer& transfer) const {
    if (past_caches) return transfer.cost("host.past_rate");
    if (each_again <= caches.near) return transfer.cost("host.near_rate");
    const double memory = from_memory();
    return 1 / ((1 - memory) / transfer.cost("host.cache_rate") + memory / transfer.cost("host.copy_rate"));
  }
};

std::vector<Use> over_memory(const TimedTransfer& transfer, double weight) {
  const bool local = transfer.from.device == transfer.to.device;
  if (!local) return transfer.world.route(transfer.from.node, transfer.from.device, transfer.to.device).uses;
  std::vector<Use> uses = transfer.world.within(transfer.from.node, transfer.from.device).uses;
  for (Use& use : uses) use.weight = weight;
  return uses;
}

}  // namespace

Program host_copy_program(const TimedTransfer& transfer) {
  const Copy copy(transfer);
  Program program;
  program.cpu = transfer.cpu();
  const double helpers = copy.threads - 1;
  program.issue = transfer.cost("host.copy_start") + (copy.past_caches ? transfer.cost("host.fence") : 0) +
                  std::min(1.0, helpers) * transfer.cost("host.thread_start") +
                  helpers * transfer.cost("host.thread_each");
  Leg leg;
  leg.unit = transfer.unit(transfer.from, "threads of " + program.cpu);
  leg.cap = copy.threads * copy.rate(transfer);
  if (const double share = copy.from_memory(); share > 0)
    leg.uses = over_memory(transfer, share * (copy.past_caches ? 2 : 3));
  program.legs.push_back(std::move(leg));
  program.finish = transfer.path.whole().processes == 2 ? transfer.cost("process.signal") : 0;
  return program;
}

}  // namespace waywiser::sim
