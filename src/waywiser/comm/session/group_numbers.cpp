#include "waywiser/comm/session/group_numbers.hpp"

#include <atomic>

namespace waywiser {
namespace {

std::size_t number_of(std::int64_t count) { return static_cast<std::size_t>(count % most_groups); }
std::int64_t bit_of(std::size_t number) { return static_cast<std::int64_t>(std::uint64_t{1} << number % 64); }

}  // namespace

std::optional<std::int64_t> GroupNumbers::first_free(std::int64_t next, const Used& used) {
  for (std::int64_t count = next; count < next + most_groups; ++count)
    if ((used[number_of(count) / 64] & bit_of(number_of(count))) == 0) return count;
  return {};
}

GroupNumbers::Used GroupNumbers::used() const {
  Used copy;
  for (std::size_t word = 0; word < words; ++word) copy[word] = std::atomic_ref((*bits_)[word]).load();
  return copy;
}

std::shared_ptr<const void> GroupNumbers::take_if_free(std::int64_t count) {
  const std::size_t number = number_of(count);
  const bool used = (std::atomic_ref((*bits_)[number / 64]).load() & bit_of(number)) != 0;
  return used ? nullptr : take(count);
}

std::shared_ptr<const void> GroupNumbers::take(std::int64_t count) {
  const std::size_t number = number_of(count);
  std::atomic_ref((*bits_)[number / 64]).fetch_or(bit_of(number));
  return {bits_.get(),
          [bits = bits_, number](const void*) { std::atomic_ref((*bits)[number / 64]).fetch_and(~bit_of(number)); }};
}

}  // namespace waywiser
