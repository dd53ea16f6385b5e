#include <algorithm>
#include <array>

#include "waywiser/base/error.hpp"
#include "waywiser/collective/default_choice.hpp"
#include "waywiser/comm/group.hpp"

namespace waywiser {
namespace {

// What each rank says of itself: color, key, and the number of the next group that it knows.
constexpr std::size_t numbers = 3;

}  // namespace

// An all_gather, whatever way is set, under its own name: who calls something else is told so.
std::optional<Group> Group::split(int color, int key) {
  const std::array<std::int64_t, numbers> mine{color, key, session_->next_group};
  std::vector<std::int64_t> choices(static_cast<std::size_t>(size()) * numbers);
  CollectiveCall wanted;
  wanted.operation = Collective::all_gather;
  wanted.rank = rank();
  wanted.ranks = size();
  wanted.count = numbers;
  const CollectiveAlgorithm& algorithm = default_algorithm(wanted, sizeof(std::int64_t));
  run(next_call(CallKind::split, std::span(mine), -1), std::make_shared<const Schedule>(algorithm.make(wanted)),
      std::span(mine), std::span(choices));
  const auto of = [&](int other) {
    return std::span(choices).subspan(static_cast<std::size_t>(other) * numbers, numbers);
  };
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
