#include <algorithm>
#include <array>

#include "waywiser/base/error.hpp"
#include "waywiser/group/group_state.hpp"

namespace waywiser {
namespace {

using Numbers = std::vector<std::int64_t>;

// What each rank tells: color, key, the next group count that it knows, whether threads share it, and the group numbers
// that it uses.
constexpr std::size_t head = 4, told_numbers = head + GroupNumbers::words;

// An all_gather under a name of its own, whatever algorithm is set: a rank that calls something else gets an error.
Numbers told_by_all(GroupCore& core, std::span<const std::int64_t> mine) {
  Numbers all(static_cast<std::size_t>(core.size()) * mine.size());
  core.all_gather_for(CallKind::split, mine, std::span(all));
  return all;
}

struct Choice {
  std::int64_t count = 0;            // of the groups before
  std::shared_ptr<const void> kept;  // the number
};

// While the ranks told each other, another thread of one of them may have taken the number for a group of its own: then
// the next try begins elsewhere than that of the other thread, whose group has another number.
Choice choose(GroupCore& core, GroupNumbers& numbers, std::int64_t color, std::int64_t key, Numbers& told) {
  for (std::int64_t least = 0;;) {
    std::array<std::int64_t, told_numbers> mine{color, key, std::max(numbers.next(), least),
                                                core.session().call_lock().is_shared() ? 1 : 0};
    std::ranges::copy(numbers.used(), mine.begin() + head);
    told = told_by_all(core, mine);
    std::int64_t next = 0, shared = 0;
    GroupNumbers::Used used{};
    for (std::size_t at = 0; at < told.size(); at += told_numbers) {
      next = std::max(next, told[at + 2]);
      shared |= told[at + 3];
      for (std::size_t word = 0; word < used.size(); ++word) used[word] |= told[at + head + word];
    }
    const std::optional<std::int64_t> count = GroupNumbers::first_free(next, used);
    if (!count)
      throw Error(ErrorKind::unavailable,
                  "there are " + std::to_string(most_groups) + " groups, the most at a time: drop some");
    std::shared_ptr<const void> kept = numbers.take_if_free(*count);
    const std::int64_t is_kept = kept ? 1 : 0;
    if (shared == 0 || std::ranges::count(told_by_all(core, std::span(&is_kept, 1)), 1) == core.size()) {
      numbers.set_next(std::max(numbers.next(), *count + 1));
      return {*count, std::move(kept)};
    }
    least = *count + 1 + core.members().group;
  }
}

}  // namespace

std::optional<Group> Group::split(int color, int key) {
  const std::lock_guard lock(*state_->core);
  Numbers told;
  Choice choice = choose(*state_->core, state_->session().group_numbers, color, key, told);
  if (color < 0) return {};
  const auto of = [&](int other, std::size_t what) {
    return told[static_cast<std::size_t>(other) * told_numbers + what];
  };
  std::vector<int> order;
  for (int other = 0; other < size(); ++other)
    if (of(other, 0) == color) order.push_back(other);
  std::ranges::stable_sort(order, {}, [&](int other) { return of(other, 1); });
  Members members{static_cast<std::uint32_t>(choice.count % most_groups), 0, {}};
  members.generation = static_cast<std::uint32_t>(choice.count / most_groups);
  members.number_taken = std::move(choice.kept);
  for (const int other : order) {
    if (other == rank()) members.rank = members.size();
    members.world.push_back(state_->core->members().world[static_cast<std::size_t>(other)]);
  }
  return Group(std::make_shared<State>(state_->core->shared_session(), std::move(members)));
}

}  // namespace waywiser
