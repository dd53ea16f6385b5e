#include "tuned_communicator.hpp"

#include <limits>

namespace waywiser_nccl {
namespace {

constexpr const char* operations[collectives] = {"broadcast", "reduce", "all_gather", "reduce_scatter", "all_reduce"};

}  // namespace

TunedCommunicator::TunedCommunicator(const ww_plan& plan, std::size_t ranks, const std::string& version)
    : ranks_(ranks) {
  const std::string partner = "NCCL " + version;
  bool empty = true;
  for (int each = 0; each < collectives; ++each) {
    ww_plan_key key{};
    key.operation = operations[each];
    key.memory = "gpu";
    key.ranks = static_cast<int>(ranks);
    key.partner = partner.c_str();
    ww_plan_choice choice;
    for (std::size_t from = 0; ww_plan_choose(&plan, &key, from, &choice) == WW_OK; from = choice.to_bytes + 1) {
      const std::optional<Way> way = read_way(choice.way);
      if (!way) throw NothingToSay(std::string("the plan has a way that is not known, ") + choice.way);
      rows_[each].push_back({from, choice.to_bytes, *way});
      empty = false;
      if (choice.to_bytes == std::numeric_limits<std::size_t>::max()) break;
    }
  }
  if (empty) throw NothingToSay("the plan has no rows for " + std::to_string(ranks) + " ranks of " + partner);
}

const Way* TunedCommunicator::find(int collective, std::size_t bytes) const noexcept {
  if (collective < 0 || collective >= collectives) return nullptr;
  if (collective == all_gather || collective == reduce_scatter) bytes /= ranks_;
  for (const Row& row : rows_[static_cast<std::size_t>(collective)])
    if (bytes <= row.to) return bytes >= row.from && row.way.algorithm >= 0 ? &row.way : nullptr;
  return nullptr;
}

}  // namespace waywiser_nccl
