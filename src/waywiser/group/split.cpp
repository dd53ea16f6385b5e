#include <algorithm>
#include <array>

#include "waywiser/base/error.hpp"
#include "waywiser/group/group_state.hpp"

namespace waywiser {
namespace {

// What each rank tells: color, key, the next group count that it knows, and the group numbers that it uses.
constexpr std::size_t numbers = 3 + GroupNumbers::words;

}  // namespace

// An all_gather under a name of its own, whatever algorithm is set: a rank that calls something else gets an error.
std::optional<Group> Group::split(int color, int key) {
  const std::lock_guard lock(state_->session());
  GroupNumbers& group_numbers = state_->session().group_numbers;
  std::array<std::int64_t, numbers> mine{color, key, group_numbers.next()};
  std::ranges::copy(group_numbers.used(), mine.begin() + 3);
  std::vector<std::int64_t> choices(static_cast<std::size_t>(size()) * numbers);
  state_->hosts->all_gather_for(CallKind::split, std::span(mine), std::span(choices));
  const auto of = [&](int other) {
    return std::span(choices).subspan(static_cast<std::size_t>(other) * numbers, numbers);
  };
  std::int64_t next = 0;
  GroupNumbers::Used used{};
  for (int other = 0; other < size(); ++other) {
    next = std::max(next, of(other)[2]);
    for (std::size_t word = 0; word < used.size(); ++word) used[word] |= of(other)[3 + word];
  }
  const std::optional<std::int64_t> count = GroupNumbers::first_free(next, used);
  if (!count)
    throw Error(ErrorKind::unavailable,
                "there are " + std::to_string(most_groups) + " groups, the most at a time: drop some");
  group_numbers.set_next(*count + 1);
  if (color < 0) return {};
  std::vector<int> order;
  for (int other = 0; other < size(); ++other)
    if (of(other)[0] == color) order.push_back(other);
  std::ranges::stable_sort(order, {}, [&](int other) { return of(other)[1]; });
  Members members{static_cast<std::uint32_t>(*count % most_groups), 0, {}};
  members.generation = static_cast<std::uint32_t>(*count / most_groups);
  members.number_taken = group_numbers.take(*count);
  for (const int other : order) {
    if (other == rank()) members.rank = members.size();
    members.world.push_back(state_->hosts->members().world[static_cast<std::size_t>(other)]);
  }
  return Group(std::make_shared<State>(state_->hosts->shared_session(), std::move(members)));
}

}  // namespace waywiser
