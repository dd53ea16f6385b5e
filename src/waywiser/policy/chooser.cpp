#include "waywiser/policy/chooser.hpp"

#include <algorithm>
#include <bit>

#include "waywiser/base/error.hpp"
#include "waywiser/measure/pair_class.hpp"
#include "waywiser/transport/transport.hpp"

namespace waywiser {
namespace {

constexpr int largest_index = 4095;
constexpr int most_places = 256, most_rails = 64;
constexpr std::size_t kinds_of_use = 16;  // encrypted or not, 1 or 2 processes, 4 operations

}  // namespace

Chooser::Chooser(Plan plan) : plan_(std::move(plan)) {
  number_places();
  const auto places = static_cast<std::size_t>(places_);
  slots_.assign(places * places * kinds_of_use * rails_.size(), -1);
  std::vector<std::vector<const PlanRow*>> rows(slots_.size());
  for (const PlanRow& row : plan_.rows)
    if (row.key.is_message()) add(row, rows);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].empty()) continue;
    slots_[i] = static_cast<std::int32_t>(tables_.size());
    tables_.push_back(make_table(std::move(rows[i])));
  }
}

void Chooser::number_places() {
  numbers_.emplace_back();
  const auto note = [&](Place place) {
    if (place.index < 0 || place.index > largest_index)
      throw Error(ErrorKind::invalid_input, "plan: " + text(place) + " is beyond the largest place number");
    auto of_node = std::ranges::find(numbers_, place.node, &Numbers::node);
    if (of_node == numbers_.end()) of_node = numbers_.insert(of_node, {place.node, {}});
    auto& numbers = of_node->of_kind[place.is_gpu() ? 1 : 0];
    const auto index = static_cast<std::size_t>(place.index);
    if (index >= numbers.size()) numbers.resize(index + 1, -1);
    if (numbers[index] < 0) numbers[index] = places_++;
  };
  for (const PlanRow& row : plan_.rows) {
    for (const auto& [source, destination] : row.key.pairs) {
      note(source);
      note(destination);
    }
    if (std::ranges::count(rails_, row.key.rail) == 0) rails_.push_back(row.key.rail);
  }
  if (places_ > most_places) throw Error(ErrorKind::invalid_input, "plan: more than 256 places");
  if (rails_.size() > most_rails) throw Error(ErrorKind::invalid_input, "plan: more than 63 rails");
}

void Chooser::add(const PlanRow& row, std::vector<std::vector<const PlanRow*>>& rows) const {
  const PlanKey& key = row.key;
  const Use use{key.processes, parse_operation(key.operation), key.encrypted, rail_number(key.rail)};
  for (const auto& [source, destination] : key.pairs) {
    auto& list = rows[slot(place_number(source), place_number(destination), use)];
    if (list.empty() || list.back() != &row) list.push_back(&row);
  }
}

Chooser::Table Chooser::make_table(std::vector<const PlanRow*> rows) {
  std::sort(rows.begin(), rows.end(), [](const PlanRow* a, const PlanRow* b) { return a->from_bytes < b->from_bytes; });
  Table table;
  for (const PlanRow* row : rows) {
    if (!table.to.empty() && row->from_bytes <= table.to.back())
      throw Error(ErrorKind::invalid_input, "plan: two rows serve " + pair_text(row->path()) + " " +
                                                row->key.operation + " at " + std::to_string(row->from_bytes) +
                                                " bytes");
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
  for (const Numbers& entry : numbers_) {
    const bool first_other = place.node == some_other_node && entry.node != this_node;
    if (entry.node != place.node && !first_other) continue;
    const std::vector<int>& numbers = entry.of_kind[place.is_gpu() ? 1 : 0];
    const auto index = static_cast<std::size_t>(place.index);
    return place.index >= 0 && index < numbers.size() ? numbers[index] : -1;
  }
  return -1;
}

int Chooser::rail_number(std::string_view rail) const noexcept {
  for (std::size_t i = 0; i < rails_.size(); ++i)
    if (rails_[i] == rail) return static_cast<int>(i);
  return -1;
}

std::size_t Chooser::slot(int source, int destination, const Use& use) const noexcept {
  const auto pair =
      static_cast<std::size_t>(source) * static_cast<std::size_t>(places_) + static_cast<std::size_t>(destination);
  const std::size_t pairs = static_cast<std::size_t>(places_) * static_cast<std::size_t>(places_);
  const auto kind = static_cast<std::size_t>((use.encrypted ? 8 : 0) + (use.processes - 1) * 4) +
                    static_cast<std::size_t>(use.operation);
  return (static_cast<std::size_t>(use.rail) * pairs + pair) * kinds_of_use + kind;
}

const PlanRow* Chooser::choose(Place source, Place destination, int processes, Operation operation, Bytes bytes,
                               std::string_view rail, bool encrypted) const noexcept {
  const int from = place_number(source), to = place_number(destination), over = rail_number(rail);
  if (from < 0 || to < 0 || over < 0 || processes < 1 || processes > 2) return nullptr;
  const std::int32_t number = slots_[slot(from, to, {processes, operation, encrypted, over})];
  if (number < 0) return nullptr;
  const Table& table = tables_[static_cast<std::size_t>(number)];
  std::size_t i = table.first[static_cast<std::size_t>(std::bit_width(bytes))];
  while (i < table.to.size() && bytes > table.to[i]) ++i;
  return i < table.to.size() && bytes >= table.from[i] ? table.rows[i] : nullptr;
}

const PlanRow* Chooser::row_of(const WaysOf& wanted, Bytes bytes) const noexcept {
  const auto found = std::ranges::find_if(plan_.rows, [&](const PlanRow& row) {
    return is_of(row.key, wanted) && bytes >= row.from_bytes && bytes <= row.to_bytes;
  });
  return found == plan_.rows.end() ? nullptr : &*found;
}

Path Chooser::path_for(const PlanRow& row, Place source, Place destination) {
  return for_pair(row.path(), source, destination);
}

std::optional<Path> Chooser::path_run_by(const PlanRow& row, Place source, Place destination, Place worker) {
  for (const RankedWay& each : row.ways) {
    Path path = for_pair(row.path(each.way), source, destination);
    if (runs_alone_on(path, worker)) return path;
  }
  return std::nullopt;
}

}  // namespace waywiser
