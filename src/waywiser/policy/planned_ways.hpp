#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "waywiser/base/way.hpp"

namespace waywiser {

class Chooser;
struct PlanKey;

// An operation whose ways are not paths.
struct WaysOf {
  std::string_view operation = {};  // "all_reduce"; lives as long as the program
  std::string_view memory = {};     // "host" or "gpu"
  int ranks = 0;                    // 0: of any number
};

bool is_of(const PlanKey& key, const WaysOf& wanted) noexcept;

struct PlannedWay {
  Bytes from = 0, to = 0;  // inclusive
  Way way;
  std::vector<Way> others = {};  // that were measured too, the best first
};

// In the order of sizes; none without a plan, which is nullptr.
std::vector<PlannedWay> planned_ways(const Chooser* chooser, const WaysOf& wanted);
[[noreturn]] void refuse_planned_way(const WaysOf& wanted, const Way& way);
// One line on standard error: nothing falls back in silence.
void tell_passed_over(const PlannedWay& planned, const WaysOf& wanted, const std::string& why);

// The plan's ways for one operation, read once into the type that their user runs: no text is compared later.
template <typename Typed>
class PlannedWays {
 public:
  struct Row {
    PlannedWay planned;
    Typed way;
    std::vector<Typed> others;
    bool is_told = false;  // that `way` was passed over
  };

  PlannedWays() = default;
  // `read`: from Way to std::optional<Typed>. Throws invalid_input for a way of the plan that it does not know.
  template <typename Read>
  PlannedWays(const Chooser* chooser, const WaysOf& wanted, Read read) : wanted_(wanted) {
    for (PlannedWay& planned : planned_ways(chooser, wanted)) {
      const auto typed = [&](const Way& way) {
        std::optional<Typed> known = read(way);
        if (!known) refuse_planned_way(wanted, way);
        return *std::move(known);
      };
      Typed first = typed(planned.way);
      std::vector<Typed> others;
      for (const Way& each : planned.others) others.push_back(typed(each));
      rows_->push_back({std::move(planned), std::move(first), std::move(others)});
    }
  }

  // The best way for this size that `may` be taken; nullptr: the plan has none. The first time that a row's best way is
  // passed over, `why_not` says why, for people.
  template <typename May, typename WhyNot>
  const Typed* find(Bytes bytes, May may, WhyNot why_not) const {
    for (Row& row : *rows_) {
      if (bytes < row.planned.from || bytes > row.planned.to) continue;
      if (may(row.way)) return &row.way;
      if (!std::exchange(row.is_told, true)) tell_passed_over(row.planned, wanted_, why_not(row.way));
      for (const Typed& each : row.others)
        if (may(each)) return &each;
    }
    return nullptr;
  }
  const std::vector<Row>& rows() const noexcept { return *rows_; }

 private:
  WaysOf wanted_;
  std::shared_ptr<std::vector<Row>> rows_ = std::make_shared<std::vector<Row>>();  // of all copies: they tell once
};

}  // namespace waywiser
