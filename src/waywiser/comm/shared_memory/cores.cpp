#include "waywiser/comm/shared_memory/cores.hpp"

#include <sched.h>

#include <algorithm>
#include <charconv>
#include <string_view>

namespace waywiser {
namespace {

constexpr int most_cores = CPU_SETSIZE;

struct Range {
  int first = 0, last = 0;  // both included
};

// Invalid lists of cores count as empty.
std::vector<Range> ranges_in(std::string_view text) {
  std::vector<Range> ranges;
  while (!text.empty()) {
    const std::string_view part = text.substr(0, text.find(','));
    text.remove_prefix(std::min(part.size() + 1, text.size()));
    Range range{-1, -1};
    const auto [end, problem] = std::from_chars(part.data(), part.data() + part.size(), range.first);
    range.last = range.first;
    if (end != part.data() + part.size()) std::from_chars(end + 1, part.data() + part.size(), range.last);
    if (problem == std::errc() && range.first >= 0 && range.last >= range.first && range.last < most_cores)
      ranges.push_back(range);
  }
  return ranges;
}

bool overlap(const std::vector<Range>& some, const std::vector<Range>& others) {
  return std::ranges::any_of(some, [&](const Range& one) {
    return std::ranges::any_of(others,
                               [&](const Range& two) { return one.first <= two.last && two.first <= one.last; });
  });
}

}  // namespace

std::string cores_of_this_process() {
  cpu_set_t set;
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return {};
  std::string text;
  for (int first = 0; first < most_cores; ++first) {
    if (!CPU_ISSET(first, &set)) continue;
    int last = first;
    while (last + 1 < most_cores && CPU_ISSET(last + 1, &set)) ++last;
    text.append(text.empty() ? "" : ",").append(std::to_string(first));
    if (last != first) text.append("-").append(std::to_string(last));
    first = last;
  }
  return text;
}

bool is_crowded(const std::vector<Introduction>& ranks, std::size_t me) {
  const std::vector<Range> mine = ranges_in(ranks[me].cores.text());
  int cores = 0, wanting = 0;
  for (const Range& range : mine) cores += range.last - range.first + 1;
  for (const Introduction& other : ranks)
    if (other.system == ranks[me].system && overlap(mine, ranges_in(other.cores.text()))) ++wanting;
  return wanting > cores;
}

}  // namespace waywiser
