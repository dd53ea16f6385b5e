#include <algorithm>
#include <array>

#include "waywiser/base/error.hpp"
#include "waywiser/comm/group.hpp"

namespace waywiser {
namespace {

constexpr int split_tag = largest_label;

// What each rank says of itself: color, key, and the number of the next group that it knows.
constexpr std::size_t numbers = 3;

}  // namespace

// Rank 0 collects and tells: two messages for each rank.
std::optional<Group> Group::split(int color, int key) {
  std::vector<std::int64_t> choices(static_cast<std::size_t>(size()) * numbers);
  const auto of = [&](int other) {
    return std::span(choices).subspan(static_cast<std::size_t>(other) * numbers, numbers);
  };
  std::ranges::copy(std::array<std::int64_t, numbers>{color, key, session_->next_group}, of(rank()).begin());
  if (rank() == 0) {
    for (int other = 1; other < size(); ++other) recv_labelled(of(other), other, split_tag);
    for (int other = 1; other < size(); ++other) send_labelled(std::span(choices), other, split_tag);
  } else {
    send_labelled(of(rank()), 0, split_tag);
    recv_labelled(std::span(choices), 0, split_tag);
  }
  std::int64_t number = 0;
  for (int other = 0; other < size(); ++other) number = std::max(number, of(other)[2]);
  if (number >= std::int64_t{most_groups})
    throw Error(ErrorKind::unavailable,
                "there have been " + std::to_string(most_groups - 1) + " splits, the most possible");
  session_->next_group = static_cast<std::uint32_t>(number) + 1;
  if (color < 0) return {};
  std::vector<int> order;
  for (int other = 0; other < size(); ++other)
    if (of(other)[0] == color) order.push_back(other);
  std::ranges::stable_sort(order, {}, [&](int other) { return of(other)[1]; });
  Members members{static_cast<std::uint32_t>(number), 0, {}};
  for (const int other : order) {
    if (other == rank()) members.rank = members.size();
    members.world.push_back(members_->world[static_cast<std::size_t>(other)]);
  }
  return Group(session_, std::move(members));
}

}  // namespace waywiser
