#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "waywiser/policy/plan.hpp"
#include "waywiser/policy/planned_ways.hpp"

namespace waywiser {

// Looks up the row of a message: below 100 ns, without allocation, thread-safe.
class Chooser {
 public:
  explicit Chooser(Plan plan);       // throws invalid_input: ranges of a pair overlap, or too many places
  Chooser(const Chooser&) = delete;  // the tables point into the plan
  Chooser& operator=(const Chooser&) = delete;

  // nullptr: the plan has no row. The row lives as long as the chooser. For a place of another node of unspecified
  // type, the plan's first other type is used. `rail`: for a rank that is bound to that network device.
  const PlanRow* choose(Place source, Place destination, int processes, Operation operation, Bytes bytes,
                        std::string_view rail = {}, bool encrypted = false) const noexcept;
  // The row's path for this very pair. Allocates.
  static Path path_for(const PlanRow& row, Place source, Place destination);
  // The same for the row's best measured path that one process runs alone on `worker`; empty: the row has none.
  static std::optional<Path> path_run_by(const PlanRow& row, Place source, Place destination, Place worker);
  // The row for what is not a path; nullptr: the plan has none. Slower: users read their rows once (PlannedWays).
  const PlanRow* row_of(const WaysOf& wanted, Bytes bytes) const noexcept;
  const Plan& plan() const noexcept { return plan_; }

 private:
  // The ranges of one pair and operation in ascending order; first_[w] is the first index for sizes of w bits.
  struct Table {
    std::vector<Bytes> from, to;
    std::vector<const PlanRow*> rows;
    std::array<std::uint32_t, 65> first{};
  };

  int place_number(Place place) const noexcept;
  int rail_number(std::string_view rail) const noexcept;
  struct Use {
    int processes;
    Operation operation;
    bool encrypted;
    int rail;
  };
  std::size_t slot(int source, int destination, const Use& use) const noexcept;
  void number_places();
  void add(const PlanRow& row, std::vector<std::vector<const PlanRow*>>& rows) const;
  static Table make_table(std::vector<const PlanRow*> rows);

  Plan plan_;
  // For hosts and GPUs of a type of node: index to row of the square table, -1 if missing.
  struct Numbers {
    NodeType node = this_node;
    std::array<std::vector<int>, 2> of_kind;
  };
  std::vector<Numbers> numbers_;  // of this node first
  int places_ = 0;
  std::vector<std::string> rails_{""};
  std::vector<std::int32_t> slots_;  // table of each (rail, pair, use), -1 for none
  std::vector<Table> tables_;
};

}  // namespace waywiser
