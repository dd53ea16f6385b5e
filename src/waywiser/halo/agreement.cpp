#include "waywiser/halo/agreement.hpp"

#include <algorithm>
#include <array>

#include "waywiser/comm/schedule_check.hpp"
#include "waywiser/group/group.hpp"

namespace waywiser {
namespace {

struct RankFailure {
  bool failed = false;
  ErrorKind kind = ErrorKind::io;
  std::array<char, 400> text{};
};

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

}  // namespace

void throw_at_all(Group& group, const std::optional<Error>& failed) {
  RankFailure mine;
  if (failed) {
    mine.failed = true;
    mine.kind = failed->kind();
    std::string(failed->what()).copy(mine.text.data(), mine.text.size() - 1);
  }
  const std::vector<RankFailure> all = of_all(group, mine);
  for (std::size_t rank = 0; rank < all.size(); ++rank)
    if (all[rank].failed) throw Error(all[rank].kind, "rank " + std::to_string(rank) + ": " + all[rank].text.data());
}

void require_equal(Group& group, std::uint64_t value, const std::string& what) {
  const std::vector<std::uint64_t> all = of_all(group, value);
  const auto other = std::ranges::find_if(all, [&](std::uint64_t each) { return each != all.front(); });
  if (other != all.end())
    throw Error(ErrorKind::invalid_input,
                "rank " + std::to_string(other - all.begin()) + " has other " + what + " than rank 0");
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

std::vector<std::uint8_t> said_by_all(Group& group, std::uint8_t mine) { return of_all(group, mine); }

}  // namespace waywiser
