#include "apps/navier_stokes/output/saved_flow.hpp"

#include <algorithm>
#include <cstring>
#include <waywiser/base/error.hpp>

namespace flow {
namespace {

constexpr std::string_view checkpoint_magic = "flow checkpoint 3\n";
constexpr std::size_t nowhere = static_cast<std::size_t>(-1);

template <typename T>
void append(std::string& text, const std::vector<T>& values) {
  const auto count = static_cast<std::uint64_t>(values.size());
  text.append(reinterpret_cast<const char*>(&count), sizeof count);
  text.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

// Takes what append() has written; false beyond the end.
class Reader {
 public:
  explicit Reader(std::string_view text) : rest_(text) {}

  template <typename T>
  bool take(std::vector<T>& values) {
    std::uint64_t count = 0;
    if (!copy(&count, sizeof count) || count > rest_.size() / sizeof(T)) return false;
    values.resize(count);
    return copy(values.data(), count * sizeof(T));
  }
  bool at_end() const { return rest_.empty(); }

 private:
  bool copy(void* to, std::size_t bytes) {
    if (bytes > rest_.size()) return false;
    if (bytes > 0) std::memcpy(to, rest_.data(), bytes);
    rest_.remove_prefix(bytes);
    return true;
  }

  std::string_view rest_;
};

std::vector<double> numbers_of(const FlowValues& values) {
  return {values.time, values.old_step, values.end_share, values.averaged};
}

// Whether each list has as many values for every cell, or face.
bool even(const SavedFlow& saved) {
  const auto fits = [&](const auto& lists, std::size_t count) {
    return std::ranges::all_of(lists, [&](const auto list) {
      const std::size_t size = (saved.values.*list).size();
      return count == 0 ? size == 0 : size % count == 0;
    });
  };
  return fits(FlowValues::cells, saved.cells.size()) && fits(FlowValues::faces, saved.faces.size());
}

// FNV-1a of 64 bits.
std::uint64_t sum_of(std::string_view text) {
  std::uint64_t sum = 0xcbf29ce484222325U;
  for (const char c : text) sum = (sum ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return sum;
}

}  // namespace

std::string SavedFlow::packed(const std::string& key) const {
  std::string text = std::string(checkpoint_magic) + key + "\n";
  append(text, std::vector<std::int64_t>{ranks, values.steps});
  append(text, numbers_of(values));
  append(text, cells);
  append(text, faces);
  for (const auto list : FlowValues::cells) append(text, values.*list);
  for (const auto list : FlowValues::faces) append(text, values.*list);
  append(text, std::vector<std::uint64_t>{sum_of(text)});
  return text;
}

SavedFlow SavedFlow::unpacked(std::string_view text, const std::string& key, const std::string& file) {
  using waywiser::Error;
  const std::string begin = std::string(checkpoint_magic) + key + "\n";
  if (!text.starts_with(begin))
    throw Error(waywiser::ErrorKind::invalid_input,
                file + " is not a checkpoint of this run: it has another case, mesh or fluid");
  constexpr std::size_t end = 2 * sizeof(std::uint64_t);
  SavedFlow saved;
  std::vector<std::int64_t> head;
  std::vector<double> numbers;
  std::vector<std::uint64_t> sum;
  Reader reader(text.substr(begin.size()));
  bool good = reader.take(head) && reader.take(numbers) && reader.take(saved.cells) && reader.take(saved.faces);
  for (const auto list : FlowValues::cells) good = good && reader.take(saved.values.*list);
  for (const auto list : FlowValues::faces) good = good && reader.take(saved.values.*list);
  good = good && reader.take(sum) && reader.at_end() && sum.size() == 1 && head.size() == 2 && numbers.size() == 4;
  if (!good || sum[0] != sum_of(text.substr(0, text.size() - end)) || !even(saved))
    throw Error(waywiser::ErrorKind::invalid_input, file + " is damaged");
  saved.ranks = head[0];
  saved.values.steps = head[1];
  saved.values.time = numbers[0];
  saved.values.old_step = numbers[1];
  saved.values.end_share = numbers[2];
  saved.values.averaged = numbers[3];
  return saved;
}

FlowPlaces::Places::Places(const std::vector<std::int64_t>& numbers)
    : filled(numbers.size(), 0), missing(numbers.size()) {
  for (std::size_t i = 0; i < numbers.size(); ++i) sorted.emplace_back(numbers[i], i);
  std::ranges::sort(sorted);
}

std::vector<std::size_t> FlowPlaces::Places::of(const std::vector<std::int64_t>& numbers) {
  std::vector<std::size_t> places;
  for (const std::int64_t number : numbers) {
    const auto found = std::ranges::lower_bound(sorted, number, {}, &std::pair<std::int64_t, std::size_t>::first);
    const bool here = found != sorted.end() && found->first == number;
    places.push_back(here ? found->second : nowhere);
    if (here && std::exchange(filled[found->second], 1) == 0) --missing;
  }
  return places;
}

FlowPlaces::FlowPlaces(const std::vector<std::int64_t>& cells, const std::vector<std::int64_t>& faces)
    : cells_(cells), faces_(faces) {}

void FlowPlaces::take(const SavedFlow& from, FlowValues& to) {
  to.steps = from.values.steps;
  to.time = from.values.time;
  to.old_step = from.values.old_step;
  to.end_share = from.values.end_share;
  to.averaged = from.values.averaged;
  const auto move = [&](const auto& lists, const std::vector<std::size_t>& places, std::size_t here) {
    for (const auto list : lists) {
      const std::vector<double>& source = from.values.*list;
      std::vector<double>& target = to.*list;
      const std::size_t each = places.empty() ? 0 : source.size() / places.size();
      if (each * here != target.size() && !places.empty()) target.resize(each * here);
      for (std::size_t i = 0; i < places.size(); ++i)
        if (places[i] != nowhere) std::copy_n(&source[each * i], each, &target[each * places[i]]);
    }
  };
  move(FlowValues::cells, cells_.of(from.cells), cells_.filled.size());
  move(FlowValues::faces, faces_.of(from.faces), faces_.filled.size());
}

}  // namespace flow
