#include "waywiser/comm/session/neighbours.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "waywiser/comm/bootstrap/root_network.hpp"
#include "waywiser/comm/bootstrap/sharing.hpp"
#include "waywiser/comm/shared_memory/shm_space.hpp"

namespace waywiser {
namespace {

constexpr std::size_t longest_reason = 512;

// What one rank has found.
struct Found {
  std::set<std::uint32_t> no_files, no_copies;  // ranks
  std::string why_no_files;                     // of the first
  ShmSpace shm;
  std::string network, ipc;  // namespaces
  bool loopback = false;
};

void write(WireWriter& writer, const std::set<std::uint32_t>& ranks) {
  writer.number(static_cast<std::uint32_t>(ranks.size()));
  for (const std::uint32_t rank : ranks) writer.number(rank);
}

std::set<std::uint32_t> read_ranks(WireReader& reader) {
  std::set<std::uint32_t> ranks;
  for (auto left = reader.number<std::uint32_t>(); left != 0; --left) ranks.insert(reader.number<std::uint32_t>());
  return ranks;
}

std::vector<std::byte> bytes_of(const Found& found) {
  WireWriter writer;
  write(writer, found.no_files);
  write(writer, found.no_copies);
  writer.text(found.why_no_files.substr(0, longest_reason));
  writer.number(found.shm.device);
  writer.number(std::uint64_t{found.shm.free});
  writer.text(found.network);
  writer.text(found.ipc);
  writer.number(static_cast<std::uint8_t>(found.loopback));
  return writer.bytes();
}

Found read_found(std::span<const std::byte> bytes) {
  WireReader reader(bytes, "what a rank reaches");
  Found found;
  found.no_files = read_ranks(reader);
  found.no_copies = read_ranks(reader);
  found.why_no_files = reader.text(longest_reason);
  found.shm.device = reader.number<std::uint64_t>();
  found.shm.free = reader.number<std::uint64_t>();
  found.network = reader.text(longest_reason);
  found.ipc = reader.text(longest_reason);
  found.loopback = reader.number<std::uint8_t>() != 0;
  reader.end();
  return found;
}

// Most ranks find the same, which is read once.
class FoundByRank {
 public:
  explicit FoundByRank(SharedParts shared) : shared_(std::move(shared)) {
    for (const auto part : shared_.parts()) different_.push_back(read_found(part));
  }
  const std::vector<Found>& different() const noexcept { return different_; }
  const Found& operator[](std::size_t rank) const { return different_[shared_.number(rank)]; }

 private:
  SharedParts shared_;
  std::vector<Found> different_;
};

Found try_all(const std::vector<Introduction>& ranks, std::size_t me) {
  Found found{{}, {}, {}, shm_space(), namespace_id("net"), namespace_id("ipc"), loopback_is_up()};
  for (const Introduction& other : ranks) {
    if (other.rank == me || other.system != ranks[me].system) continue;
    const Reach reach = ReachTrial::of(other);
    if (!reach.files && found.no_files.empty()) found.why_no_files = reach.why_not;
    if (!reach.files) found.no_files.insert(other.rank);
    if (!reach.copies) found.no_copies.insert(other.rank);
  }
  return found;
}

using Circle = std::vector<std::uint32_t>;  // ranks that all reach each other's memory

// Circles by the machine id that the ranks came with. A rank joins the first one in which it is a neighbour of all.
std::map<std::string, std::vector<Circle>> circles_of(const std::vector<Introduction>& ranks,
                                                      const FoundByRank& found) {
  std::map<std::string, std::vector<Circle>> circles;
  const bool all_reach_files =
      std::ranges::all_of(found.different(), [](const Found& one) { return one.no_files.empty(); });
  std::vector<Circle>* last = nullptr;  // of the rank before
  for (const Introduction& one : ranks) {
    const auto is_neighbour = [&](std::uint32_t other) {
      return !found[one.rank].no_files.contains(other) && !found[other].no_files.contains(one.rank);
    };
    if (one.rank == 0 || one.machine_id != ranks[one.rank - 1].machine_id) last = &circles[one.machine_id];
    auto& here = *last;
    const auto place = std::ranges::find_if(
        here, [&](const Circle& all) { return all_reach_files || std::ranges::all_of(all, is_neighbour); });
    if (place == here.end())
      here.push_back({one.rank});
    else
      place->push_back(one.rank);
  }
  return circles;
}

// Of ranks that came as ranks of one machine.
std::string why_split(const std::vector<Circle>& circles, const FoundByRank& found, const Introduction& me) {
  if (circles.size() < 2) return {};
  const std::uint32_t one = circles[0][0], other = circles[1][0];
  const std::string& why = found[found[one].no_files.contains(other) ? one : other].why_no_files;
  return "ranks " + std::to_string(one) + " and " + std::to_string(other) + " on " + me.host +
         " do not reach each other's memory" + (why.empty() ? "" : " (" + why + ")");
}

std::string why_no_shm(const std::vector<std::uint32_t>& here, const FoundByRank& found, const Introduction& me,
                       unsigned& sharing) {
  std::map<std::uint64_t, std::pair<unsigned, Bytes>> spaces;  // how many ranks share each, and its free bytes
  for (const std::uint32_t rank : here) {
    auto& [ranks, free] = spaces.try_emplace(found[rank].shm.device, 0u, found[rank].shm.free).first->second;
    free = std::min(free, found[rank].shm.free);
    ++ranks;
  }
  sharing = spaces[found[me.rank].shm.device].first;
  for (const auto& [device, space] : spaces) {
    const Bytes needed = space.first * shm_of_rank;
    if (space.second < needed)
      return "/dev/shm on " + me.host + " has " + std::to_string(space.second) + " bytes free and UCX needs " +
             std::to_string(needed) + " for " + std::to_string(space.first) +
             " ranks (docker run --shm-size=" + std::to_string((needed >> 20) + 1) + "m makes room)";
  }
  return {};
}

// UCX takes ranks for ranks of two machines by this fact, whatever they share.
std::string why_apart_for_ucx(const std::vector<std::uint32_t>& here, const FoundByRank& found,
                              const Introduction& me) {
  const auto other =
      std::ranges::find_if(here, [&](std::uint32_t rank) { return found[rank].ipc != found[here.front()].ipc; });
  if (other == here.end()) return {};
  return "ranks " + std::to_string(here.front()) + " and " + std::to_string(*other) + " on " + me.host +
         " are in two IPC namespaces, between which UCX shares no memory";
}

std::string why_no_loopback(const std::vector<std::uint32_t>& here, const FoundByRank& found, std::uint32_t me) {
  for (const std::uint32_t rank : here)
    if (found[rank].network != found[me].network)
      return "ranks " + std::to_string(std::min(me, rank)) + " and " + std::to_string(std::max(me, rank)) +
             " are in two network namespaces";
  for (const std::uint32_t rank : here)
    if (!found[rank].loopback) return "the loopback interface of rank " + std::to_string(rank) + " is down";
  return {};
}

}  // namespace

LocalWays find_neighbours(Muster& muster, const Launch& launch, Deadline deadline,
                          const std::function<bool()>& interrupted) {
  LocalWays ways;
  if (launch.size == 1) return ways;
  const auto rank = static_cast<std::uint32_t>(launch.rank);
  const Introduction me = muster.ranks[rank];
  const FoundByRank found(
      share_with_all(muster, launch.rank, bytes_of(try_all(muster.ranks, rank)), deadline, interrupted));
  std::vector<std::uint32_t> here;  // ranks of this system
  for (const Introduction& other : muster.ranks)
    if (other.system == me.system) here.push_back(other.rank);
  std::map<std::string, std::vector<Circle>> circles = circles_of(muster.ranks, found);
  ways.why_split = why_split(circles[me.machine_id], found, me);
  ways.copies = std::ranges::all_of(here, [&](std::uint32_t one) { return found[one].no_copies.empty(); });
  ways.why_no_shm = why_no_shm(here, found, me, ways.sharing_shm);
  if (ways.why_no_shm.empty()) ways.why_no_shm = why_apart_for_ucx(here, found, me);
  ways.why_no_loopback = why_no_loopback(here, found, rank);
  ways.speaks = here.front() == rank;
  for (const auto& [machine, parts] : circles)
    for (std::size_t i = 1; i < parts.size(); ++i)
      for (const std::uint32_t member : parts[i])
        muster.ranks[member].machine_id = muster.ranks[member].machine_id + (" part " + std::to_string(i));
  return ways;
}

}  // namespace waywiser
