#include "waywiser/policy/chooser.hpp"

#include <algorithm>
#include <bit>

#include "waywiser/base/error.hpp"
#include "waywiser/measure/pair_class.hpp"
#include "waywiser/transport/transport.hpp"

namespace waywiser {
namespace {

constexpr int largest_index = 4095;
constexpr int most_places = 256;
constexpr std::size_t kinds_of_use = 8;  // 1 or 2 processes, 4 operations

std::size_t kind_of(Place place) noexcept { return (place.is_gpu() ? 1 : 0) + (place.other_machine ? 2 : 0); }

}  // namespace

Chooser::Chooser(Plan plan) : plan_(std::move(plan)) {
  number_places();
  slots_.assign(static_cast<std::size_t>(places_) * static_cast<std::size_t>(places_) * kinds_of_use, -1);
  std::vector<std::vector<const PlanRow*>> rows(slots_.size());
  for (const PlanRow& row : plan_.rows) add(row, rows);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].empty()) continue;
    slots_[i] = static_cast<std::int32_t>(tables_.size());
    tables_.push_back(make_table(std::move(rows[i])));
  }
}

void Chooser::number_places() {
  const auto note = [&](Place place) {
    if (place.index < 0 || place.index > largest_index)
      throw Error(ErrorKind::invalid_input, "plan: " + text(place) + " is beyond the largest place number");
    auto& numbers = numbers_[kind_of(place)];
    const auto index = static_cast<std::size_t>(place.index);
    if (index >= numbers.size()) numbers.resize(index + 1, -1);
    if (numbers[index] < 0) numbers[index] = places_++;
  };
  for (const PlanRow& row : plan_.rows)
    for (const auto& [source, destination] : row.pairs) {
      note(source);
      note(destination);
    }
  if (places_ > most_places) throw Error(ErrorKind::invalid_input, "plan: more than 256 places");
}

void Chooser::add(const PlanRow& row, std::vector<std::vector<const PlanRow*>>& rows) const {
  for (const auto& [source, destination] : row.pairs) {
    auto& list = rows[slot(place_number(source), place_number(destination), row.processes, row.operation)];
    if (list.empty() || list.back() != &row) list.push_back(&row);
  }
}

Chooser::Table Chooser::make_table(std::vector<const PlanRow*> rows) {
  std::sort(rows.begin(), rows.end(), [](const PlanRow* a, const PlanRow* b) { return a->from_bytes < b->from_bytes; });
  Table table;
  for (const PlanRow* row : rows) {
    if (!table.to.empty() && row->from_bytes <= table.to.back())
      throw Error(ErrorKind::invalid_input, "plan: two rows serve " + pair_text(row->path) + " " +
                                                std::string(name(row->operation)) + " at " +
                                                std::to_string(row->from_bytes) + " bytes");
    table.from.push_back(row->from_bytes);
    table.to.push_back(row->to_bytes);
  }
  table.rows = std::move(rows);
  for (unsigned width = 0; width <= 64; ++width) {
    const Bytes smallest = width == 0 ? 0 : Bytes{1} << (width - 1);
    const auto first = std::lower_bound(table.to.begin(), table.to.end(), smallest);
    table.first[width] = static_cast<std::uint32_t>(first - table.to.begin());
  }
  return table;
}

int Chooser::place_number(Place place) const noexcept {
  const auto& numbers = numbers_[kind_of(place)];
  return place.index >= 0 && static_cast<std::size_t>(place.index) < numbers.size()
             ? numbers[static_cast<std::size_t>(place.index)]
             : -1;
}

std::size_t Chooser::slot(int source, int destination, int processes, Operation operation) const noexcept {
  const auto pair =
      static_cast<std::size_t>(source) * static_cast<std::size_t>(places_) + static_cast<std::size_t>(destination);
  return pair * kinds_of_use + static_cast<std::size_t>(processes - 1) * 4 + static_cast<std::size_t>(operation);
}

const PlanRow* Chooser::choose(Place source, Place destination, int processes, Operation operation,
                               Bytes bytes) const noexcept {
  const int from = place_number(source), to = place_number(destination);
  if (from < 0 || to < 0 || processes < 1 || processes > 2) return nullptr;
  const std::int32_t number = slots_[slot(from, to, processes, operation)];
  if (number < 0) return nullptr;
  const Table& table = tables_[static_cast<std::size_t>(number)];
  std::size_t i = table.first[static_cast<std::size_t>(std::bit_width(bytes))];
  while (i < table.to.size() && bytes > table.to[i]) ++i;
  return i < table.to.size() && bytes >= table.from[i] ? table.rows[i] : nullptr;
}

const CollectiveRow* Chooser::choose_collective(std::string_view operation, std::string_view memory, int ranks,
                                                Bytes bytes) const noexcept {
  for (const CollectiveRow& row : plan_.collectives)
    if (row.ranks == ranks && bytes >= row.from_bytes && bytes <= row.to_bytes && row.memory == memory &&
        row.operation == operation)
      return &row;
  return nullptr;
}

Path Chooser::path_for(const PlanRow& row, Place source, Place destination) {
  return for_pair(row.path, source, destination);
}

std::optional<Path> Chooser::one_sided_path_for(const PlanRow& row, Place source, Place destination) {
  if (!is_two_sided(row.path)) return path_for(row, source, destination);
  return row.one_sided ? std::optional(for_pair(*row.one_sided, source, destination)) : std::nullopt;
}

}  // namespace waywiser
