#include "waywiser/halo/agreement.hpp"

#include <algorithm>
#include <numeric>

#include "waywiser/comm/schedule_check.hpp"
#include "waywiser/group/failure_at_all.hpp"
#include "waywiser/group/group.hpp"

namespace waywiser {
namespace {

template <typename T>
ConstElements as_elements(const T* values, std::size_t count) {
  return {ConstRegion{reinterpret_cast<const std::byte*>(values), count * sizeof(T), host(0)}, DataType::uint8};
}
template <typename T>
Elements as_elements(T* values, std::size_t count) {
  return {Region{reinterpret_cast<std::byte*>(values), count * sizeof(T), host(0)}, DataType::uint8};
}

template <typename T>
std::vector<T> of_all(Group& group, const T& mine) {
  std::vector<T> all(static_cast<std::size_t>(group.size()));
  group.all_gather(as_elements(&mine, 1), as_elements(all.data(), all.size()));
  return all;
}

// The sides that have cells, by rank of the neighbour.
struct SidesByPeer {
  std::vector<std::size_t> order, counts;

  SidesByPeer(const std::vector<HaloSide>& sides, int ranks) : counts(static_cast<std::size_t>(ranks)) {
    for (std::size_t i = 0; i < sides.size(); ++i) {
      if (sides[i].cells.count == 0) continue;
      order.push_back(i);
      ++counts[static_cast<std::size_t>(sides[i].peer)];
    }
    std::ranges::stable_sort(order, {}, [&](std::size_t i) { return sides[i].peer; });
  }
};

}  // namespace

void require_equal(Group& group, std::uint64_t value, const std::string& what) {
  const std::vector<std::uint64_t> all = of_all(group, value);
  const auto other = std::ranges::find_if(all, [&](std::uint64_t each) { return each != all.front(); });
  if (other != all.end())
    throw_known_to_all(group, Error(ErrorKind::invalid_input, "rank " + std::to_string(other - all.begin()) +
                                                                  " has other " + what + " than rank 0"));
}

void require_equal(Group& group, std::span<const AgreedValue> values) {
  std::vector<std::uint64_t> mine, all(values.size() * static_cast<std::size_t>(group.size()));
  for (const AgreedValue& each : values) mine.push_back(each.value);
  group.all_gather(as_elements(std::as_const(mine).data(), mine.size()), as_elements(all.data(), all.size()));
  for (std::size_t i = 0; i < all.size(); ++i)
    if (const std::size_t which = i % values.size(); all[i] != all[which])
      throw_known_to_all(group,
                         Error(ErrorKind::invalid_input, "rank " + std::to_string(i / values.size()) + " has another " +
                                                             values[which].what + " than rank 0"));
}

void require_same_grid(Group& group, const HaloGridMarks& grid) {
  const AgreedValue all[] = {{grid.shape, "shape of the whole grid"},
                             {grid.ghost, "width of ghosts"},
                             {grid.periodic, "choice of periodic dimensions"},
                             {grid.boxes, "list of all ranks' boxes"}};
  require_equal(group, all);
}

void require_matching(Group& group, const Schedule& schedule) {
  const int ranks = group.size();
  std::vector<MessageSummary> sent, comes(static_cast<std::size_t>(ranks));
  for (int peer = 0; peer < ranks; ++peer) sent.push_back(sent_to(schedule, peer, DataType::uint8));
  group.all_to_all(as_elements(std::as_const(sent).data(), sent.size()), as_elements(comes.data(), comes.size()));
  throw_at_all(group, failure_of([&] {
                 for (int peer = 0; peer < ranks; ++peer) {
                   const MessageSummary taken = received_from(schedule, peer, DataType::uint8),
                                        given = comes[static_cast<std::size_t>(peer)];
                   if (taken == given) continue;
                   const auto text = [](const MessageSummary& each) {
                     return std::to_string(each.messages) + " parts of " + std::to_string(each.bytes) + " bytes";
                   };
                   throw Error(
                       ErrorKind::invalid_input,
                       "takes " + text(taken) + " from rank " + std::to_string(peer) + ", which gives " + text(given) +
                           (taken.messages == given.messages && taken.bytes == given.bytes ? " of other sizes" : ""));
                 }
               }));
}

std::vector<std::uint64_t> said_by_all(Group& group, std::uint64_t mine) { return of_all(group, mine); }

std::vector<std::uint8_t> told_by_side(Group& group, const HaloPartition& partition,
                                       std::span<const std::uint8_t> mine) {
  const SidesByPeer gives(partition.gives, partition.ranks), takes(partition.takes, partition.ranks);
  std::vector<std::size_t> comes(gives.counts.size());
  group.all_to_all(as_elements(std::as_const(gives.counts).data(), gives.counts.size()),
                   as_elements(comes.data(), comes.size()));
  throw_at_all(group, failure_of([&] {
                 for (std::size_t peer = 0; peer < comes.size(); ++peer)
                   if (comes[peer] != takes.counts[peer])
                     throw Error(ErrorKind::invalid_input,
                                 "takes " + std::to_string(takes.counts[peer]) + " sides of a partition from rank " +
                                     std::to_string(peer) + ", which gives " + std::to_string(comes[peer]));
               }));
  std::vector<std::uint8_t> out, in(takes.order.size()), told(partition.takes.size(), 0);
  for (const std::size_t side : gives.order) out.push_back(mine[side]);
  group.all_to_all_v(as_elements(std::as_const(out).data(), out.size()), gives.counts,
                     as_elements(in.data(), in.size()), takes.counts);
  for (std::size_t i = 0; i < in.size(); ++i) told[takes.order[i]] = in[i];
  return told;
}

std::vector<std::uint64_t> union_of_all(Group& group, std::span<const std::uint64_t> mine) {
  const std::vector<std::size_t> counts = of_all(group, mine.size());
  std::vector<std::uint64_t> all(std::accumulate(counts.begin(), counts.end(), std::size_t{0}));
  group.all_gather_v(mine, std::span(all), counts);
  std::ranges::sort(all);
  all.erase(std::ranges::unique(all).begin(), all.end());
  return all;
}

}  // namespace waywiser
