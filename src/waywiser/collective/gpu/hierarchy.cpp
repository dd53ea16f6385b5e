#include "waywiser/collective/gpu/hierarchy.hpp"

#include <algorithm>

#include "waywiser/base/error.hpp"
#include "waywiser/collective/gpu/kernel_domain.hpp"
#include "waywiser/policy/defaults.hpp"

namespace waywiser {
namespace {

bool are_alike(const std::vector<std::vector<int>>& parts) {
  return std::ranges::all_of(parts, [&](const auto& part) { return part.size() == parts.front().size(); });
}

// Whether the blocks of each domain are consecutive.
bool lie_in_order(const std::vector<std::vector<int>>& parts) {
  int next = 0;
  for (const auto& part : parts)
    for (const int rank : part)
      if (rank != next++) return false;
  return true;
}

}  // namespace

Hierarchy::Hierarchy(const KernelDomain& domain, const Call& as, Workers workers)
    : domain_(domain), as_(as), element_(bytes_of(as.type)), workers_(std::move(workers)) {}

bool Hierarchy::serves(const KernelDomain& domain, const CollectiveCall& call) {
  const auto& parts = domain.all();
  const bool kernels = std::ranges::any_of(parts, [](const auto& part) { return part.size() > 1; });
  if (parts.size() < 2 || !kernels || !domain.serves_all_parts() || !call.counts.empty() || !is_arithmetic(call.as.op))
    return false;
  switch (call.operation) {
    case Collective::all_reduce:
    case Collective::broadcast:
    case Collective::barrier: return true;
    case Collective::all_gather:
    case Collective::reduce_scatter: return are_alike(parts) && lie_in_order(parts);
    default: return false;
  }
}

void Hierarchy::enqueue(const CollectiveCall& call, ConstRegion input, Region output) {
  switch (call.operation) {
    case Collective::all_reduce: return all_reduce(call.count, input, output);
    case Collective::all_gather: return all_gather(call.count, input, output);
    case Collective::reduce_scatter: return reduce_scatter(call.count, input, output);
    case Collective::broadcast: return broadcast(call.count, call.root, output);
    case Collective::barrier: return barrier();
    default: throw Error(ErrorKind::invalid_input, "no hierarchy for " + std::string(name(call.operation)));
  }
}

CollectiveCall Hierarchy::local(Collective operation, std::size_t count, int root) const {
  CollectiveCall call;
  call.as = as_;
  call.operation = operation;
  call.count = count;
  call.root = root;
  call.rank = domain_.rank();
  call.ranks = domain_.size();
  return call;
}

void Hierarchy::by_kernels(Collective operation, std::size_t count, ConstRegion input, Region output, int root) {
  if (domain_.size() > 1) workers_.by_kernels(local(operation, count, root), input, output);
}

void Hierarchy::by_hosts(const std::vector<int>& ranks, Collective operation, std::size_t count, ProxiedArrays arrays,
                         int root) {
  CollectiveCall call = local(operation, count, root);
  call.rank = domain_.index();
  call.ranks = static_cast<int>(ranks.size());
  workers_.by_hosts(ranks, call, std::move(arrays));
}

// The ranks with this rank's index in their domains.
std::vector<int> Hierarchy::column() const {
  std::vector<int> ranks;
  for (const auto& part : domain_.all()) ranks.push_back(part[static_cast<std::size_t>(domain_.rank())]);
  return ranks;
}

std::vector<int> Hierarchy::leaders() const {
  std::vector<int> ranks;
  for (const auto& part : domain_.all()) ranks.push_back(part.front());
  return ranks;
}

void Hierarchy::all_reduce(std::size_t count, ConstRegion input, Region output) {
  const auto ranks = static_cast<std::size_t>(domain_.size());
  const std::size_t slice = are_alike(domain_.all()) ? count / ranks : 0;
  if (slice * element_ < defaults::hierarchy_slice) return all_reduce_by_leaders(count, input, output);
  const Bytes even = slice * ranks * element_, rest = count * element_ - even;
  all_reduce_in_slices(slice, input.slice(0, even), output.slice(0, even));
  if (rest != 0) all_reduce_by_leaders(rest / element_, input.slice(even, rest), output.slice(even, rest));
}

void Hierarchy::all_reduce_by_leaders(std::size_t count, ConstRegion input, Region output) {
  const bool leads = domain_.rank() == 0, alone = domain_.size() == 1;
  by_kernels(Collective::reduce, count, input, leads ? output : Region{nullptr, 0, output.place});
  const ConstRegion mine = alone ? input : ConstRegion(output);
  const bool same = mine.data == output.data;
  if (leads)
    by_hosts(leaders(), Collective::all_reduce, count,
             {{Region{const_cast<std::byte*>(mine.data), mine.bytes, mine.place}}, {output}, same});
  by_kernels(Collective::broadcast, count, output, output);
}

void Hierarchy::all_reduce_in_slices(std::size_t slice, ConstRegion input, Region output) {
  const Region sums = workers_.scratch(slice * element_);
  by_kernels(Collective::reduce_scatter, slice, input, sums);
  by_hosts(column(), Collective::all_reduce, slice, {{sums}, {sums}, true});
  by_kernels(Collective::all_gather, slice, sums, output);
}

void Hierarchy::all_gather(std::size_t count, ConstRegion input, Region output) {
  const Bytes block = count * element_, part = block * static_cast<Bytes>(domain_.size());
  const Region all = workers_.scratch(block * domain_.all().size());
  by_hosts(column(), Collective::all_gather, count,
           {{Region{const_cast<std::byte*>(input.data), input.bytes, input.place}}, {all}});
  for (std::size_t i = 0; i < domain_.all().size(); ++i)
    by_kernels(Collective::all_gather, count, all.slice(i * block, block), output.slice(i * part, part));
}

void Hierarchy::reduce_scatter(std::size_t count, ConstRegion input, Region output) {
  const Bytes block = count * element_, part = block * static_cast<Bytes>(domain_.size());
  const Region sums = workers_.scratch(block * domain_.all().size());
  for (std::size_t i = 0; i < domain_.all().size(); ++i)
    by_kernels(Collective::reduce_scatter, count, input.slice(i * part, part), sums.slice(i * block, block));
  by_hosts(column(), Collective::reduce_scatter, count, {{sums}, {output}});
}

// First within the root's domain, whose first rank then sends it to the other domains.
void Hierarchy::broadcast(std::size_t count, int root, Region data) {
  const auto& parts = domain_.all();
  const auto from = std::ranges::find_if(parts, [&](const auto& part) { return std::ranges::count(part, root) != 0; });
  const auto place = static_cast<int>(std::ranges::find(*from, root) - from->begin());
  const auto first = static_cast<int>(from - parts.begin());
  const bool here = first == domain_.index();
  if (here) by_kernels(Collective::broadcast, count, data, data, place);
  if (domain_.rank() == 0)
    by_hosts(leaders(), Collective::broadcast, count, {{data}, {data}, true, here, !here}, first);
  if (!here) by_kernels(Collective::broadcast, count, data, data);
}

void Hierarchy::barrier() {
  by_kernels(Collective::barrier, 0, {}, {});
  if (domain_.rank() == 0) by_hosts(leaders(), Collective::barrier, 0, {});
  by_kernels(Collective::barrier, 0, {}, {});
}

}  // namespace waywiser
