#include "waywiser/heap/heap_state.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "waywiser/group/failure_at_all.hpp"
#include "waywiser/heap/message_protocols.hpp"
#include "waywiser/kernels/clear.hpp"

namespace waywiser {
namespace {

using one_sided::TeamCounters;

constexpr Bytes largest = Bytes{1} << 48;

template <std::size_t size>
void write_text(std::array<char, size>& to, const std::string& text) {
  to.fill('\0');
  text.copy(to.data(), size - 1);
}

// The memory of a rank without this rank's platform: hosts need none.
std::shared_ptr<Platform> platform_for(Group& group, Place place) {
  return place.is_gpu() ? group.platform() : std::shared_ptr<Platform>(open_host_platform());
}

Bytes rounded(Bytes bytes) {
  return (bytes + alignof(TeamCounters) - 1) / alignof(TeamCounters) * alignof(TeamCounters);
}

// Throws at all ranks what one has failed with, and what differs.
void check_alike(Group& group, std::vector<HeapOffer>& all) {
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    HeapOffer& each = all[rank];
    each.name.back() = each.why_not.back() = each.memory.gpu.back() = '\0';
    if (each.why_not[0] != '\0')
      throw_known_to_all(group, Error(each.kind, "rank " + std::to_string(rank) + ": " + each.why_not.data()));
  }
  const auto described = [](const HeapOffer& offer) {
    return std::to_string(offer.bytes) + " bytes on " + (offer.on_gpu ? "a GPU" : "the host") + " as '" +
           offer.name.data() + "'";
  };
  for (std::size_t rank = 1; rank < all.size(); ++rank)
    if (described(all[rank]) != described(all[0]))
      throw_known_to_all(group,
                         Error(ErrorKind::invalid_input, "heap: rank " + std::to_string(rank) + " allocates " +
                                                             described(all[rank]) + ", rank 0 " + described(all[0])));
}

}  // namespace

Heap::State::State(Group& of, const std::string& its_name, Place where, Bytes size)
    : group(of),
      name(its_name),
      place(where),
      bytes(size),
      counters(size <= largest ? rounded(size) : 0),
      deadline(of.timeout()) {
  const HeapOffer mine = make_part();
  std::vector<HeapOffer> all = heap_gather(group, mine);
  check_alike(group, all);
  const std::vector<HeapReach> reached = heap_gather(group, reach_all(all));
  choose_protocols(reached);
  make_proxy(reached);
  ward = std::make_unique<HeapWard>(session(), *reinterpret_cast<one_sided::FaultNotice*>(notice.region().data));
}

Heap::State::~State() {
  if (proxy) proxy->end();
}

HeapReach Heap::State::reach_all(const std::vector<HeapOffer>& all) {
  HeapReach mine;
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    opened.emplace_back();
    why_proxied.emplace_back();
    if (static_cast<int>(rank) != group.rank()) {
      why_proxied.back() = why_not_reached(static_cast<int>(rank), all[rank]);
      if (why_proxied.back().empty()) try {
          opened.back() = open(all[rank].memory);
        } catch (const Error& error) {
          why_proxied.back() = error.what();
        }
      if (!arrive_in_lines(all[rank])) mine.has_lines = 0;
    }
    if (!why_proxied.back().empty()) mine.not_reached |= std::uint64_t{1} << rank;
  }
  return mine;
}

void Heap::State::choose_protocols(const std::vector<HeapReach>& all) {
  for (const HeapReach& each : all)
    if (each.not_reached != 0)
      why_no_lines = "stores do not reach all ranks";
    else if (each.has_lines == 0 && why_no_lines.empty())
      why_no_lines = "not all GPUs are joined by NVLink";
  protocols = message_protocols(plan_of(group), why_no_lines.empty());
}

// All ranks make one if any needs it: fences and teams are the same everywhere.
void Heap::State::make_proxy(const std::vector<HeapReach>& reached) {
  if (std::ranges::all_of(reached, [](const HeapReach& each) { return each.not_reached == 0; })) return;
  const auto me = static_cast<unsigned>(group.rank());
  std::vector<int> peers;
  for (unsigned rank = 0; rank < reached.size(); ++rank)
    if (((reached[me].not_reached >> rank | reached[rank].not_reached >> me) & 1) != 0)
      peers.push_back(static_cast<int>(rank));
  of_proxy = group.split(0);
  HeapOffer mine;
  try {
    proxy = std::make_shared<HeapProxy>(*of_proxy, platform, own.region(), peers);
    HeapProxy::start(proxy);
  } catch (const Error& error) {
    mine.kind = error.kind();
    write_text(mine.why_not, error.what());
  }
  try {
    std::vector<HeapOffer> all = heap_gather(group, mine);
    check_alike(group, all);
  } catch (const Error&) {
    if (proxy) proxy->end();
    throw;
  }
}

HeapOffer Heap::State::make_part() {
  HeapOffer mine;
  mine.bytes = bytes;
  mine.on_gpu = place.is_gpu();
  write_text(mine.name, name);
  try {
    if (name.empty() || name.size() >= mine.name.size())
      throw Error(ErrorKind::invalid_input, "heap: a name has 1 to 63 characters");
    if (bytes == 0 || bytes > largest)
      throw Error(ErrorKind::invalid_input, "heap '" + name + "': " + std::to_string(bytes) + " bytes");
    if (group.size() > static_cast<int>(one_sided::most_ranks))
      throw Error(ErrorKind::unavailable, "heap '" + name + "': kernels reach at most " +
                                              std::to_string(one_sided::most_ranks) + " ranks, not " +
                                              std::to_string(group.size()));
    platform = platform_for(group, place);
    own = platform->allocate(place, next_ticket() + sizeof(std::uint64_t),
                             mine.on_gpu ? Allocation::gpu : Allocation::shared);
    clear(own.region());
    const Place near = mine.on_gpu ? platform->nearest_host(place.index) : place;
    notice = platform->allocate(near, sizeof(one_sided::FaultNotice),
                                mine.on_gpu ? Allocation::pinned : Allocation::pageable);
    new (notice.region().data) one_sided::FaultNotice;
    if (mine.on_gpu) {
      mine.memory = platform->share(own.region());
    } else {
      exported = platform->export_memory(own);
      mine.memory = share_host(exported);
    }
  } catch (const Error& error) {
    mine.kind = error.kind();
    write_text(mine.why_not, error.what());
  }
  return mine;
}

std::string Heap::State::why_not_reached(int rank, const HeapOffer& theirs) const {
  if (!same_machine(group, rank)) return why_apart(group, rank) + ": stores of kernels do not reach that";
  if (!place.is_gpu()) return {};
  const auto gpu = platform->find_gpu(theirs.memory.identity());
  if (!gpu || *gpu == place) return {};
  return platform->why_no_peer_access(place.index, gpu->index).value_or("");
}

bool Heap::State::arrive_in_lines(const HeapOffer& theirs) const {
  if (!place.is_gpu()) return true;
  const auto gpu = platform->find_gpu(theirs.memory.identity());
  return gpu && !platform->why_no_whole_lines(place.index, gpu->index);
}

Memory Heap::State::open(const SharedRegion& shared) const {
  return place.is_gpu() ? platform->open_shared(shared, place) : open_shared_host(*platform, shared, place);
}

void Heap::State::clear(Region region) const {
  if (!place.is_gpu()) {
    std::memset(region.data, 0, region.bytes);
    return;
  }
  waywiser::clear(*platform->open_stream(place), region);
}

void Heap::State::check_rank(int rank) const {
  if (rank < 0 || rank >= group.size())
    throw Error(ErrorKind::invalid_input, "heap '" + name + "' has no rank " + std::to_string(rank));
}

one_sided::HeapTerms Heap::State::terms(const Stream* stream) const {
  if (stream == nullptr ? place.is_gpu() : stream->place() != place)
    throw Error(ErrorKind::invalid_input, "heap '" + name + "' is on " + text(place) + ", its kernels run on " +
                                              (stream == nullptr ? "the host" : text(stream->place())));
  const auto reach = [&](Region region) { return stream == nullptr ? region.data : stream->reach(region); };
  one_sided::HeapTerms terms;
  terms.bytes = bytes;
  terms.counters = counters;
  terms.deadline_ns = static_cast<std::uint64_t>(deadline * 1e9);
  terms.rank = group.rank();
  terms.size = group.size();
  terms.protocols = protocols;
  terms.notice = reinterpret_cast<one_sided::FaultNotice*>(reach(notice.region()));
  if (proxy) {
    terms.ring = proxy->ring(stream);
    terms.tickets = reinterpret_cast<std::uint64_t*>(reach(own.region()) + next_ticket());
  }
  for (std::size_t rank = 0; rank < opened.size(); ++rank) {
    const Memory& memory = static_cast<int>(rank) == terms.rank ? own : opened[rank];
    if (memory) terms.ranks[rank] = reach(memory.region());
  }
  terms.own = terms.ranks[terms.rank];
  return terms;
}

}  // namespace waywiser
