#pragma once

#include <functional>
#include <vector>

#include "waywiser/collective/call.hpp"
#include "waywiser/collective/proxy/proxied_collective.hpp"
#include "waywiser/comm/message/call.hpp"

namespace waywiser {

class KernelDomain;

// A collective on a stream for ranks in several kernel domains (machines, or parts of one): kernels within each domain,
// the hosts between them, and kernels again. Each domain's blocks must be consecutive in rank order.
class Hierarchy {
 public:
  // The functions that carry out the steps, in stream order.
  struct Workers {
    // Among the ranks of this rank's domain, if it has several.
    std::function<void(const CollectiveCall&, ConstRegion input, Region output)> by_kernels;
    // Among some ranks of the group.
    std::function<void(const std::vector<int>& ranks, const CollectiveCall&, ProxiedArrays)> by_hosts;
    // GPU memory, valid until the next call.
    std::function<Region(Bytes)> scratch;
  };
  // `as`: of the parts too.
  Hierarchy(const KernelDomain& domain, const Call& as, Workers workers);

  // The same at all ranks.
  static bool serves(const KernelDomain& domain, const CollectiveCall& call);
  void enqueue(const CollectiveCall& call, ConstRegion input, Region output);

 private:
  CollectiveCall local(Collective operation, std::size_t count, int root = 0) const;
  void by_kernels(Collective operation, std::size_t count, ConstRegion input, Region output, int root = 0);
  void by_hosts(const std::vector<int>& ranks, Collective operation, std::size_t count, ProxiedArrays arrays,
                int root = 0);
  std::vector<int> column() const;
  std::vector<int> leaders() const;
  void all_reduce(std::size_t count, ConstRegion input, Region output);
  void all_reduce_by_leaders(std::size_t count, ConstRegion input, Region output);
  void all_reduce_in_slices(std::size_t slice, ConstRegion input, Region output);
  void all_gather(std::size_t count, ConstRegion input, Region output);
  void reduce_scatter(std::size_t count, ConstRegion input, Region output);
  void broadcast(std::size_t count, int root, Region data);
  void barrier();

  const KernelDomain& domain_;
  const Call as_;
  const Bytes element_;
  const Workers workers_;
};

}  // namespace waywiser
