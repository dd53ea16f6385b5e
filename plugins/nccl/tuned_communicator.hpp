#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include "agreed_plan.hpp"
#include "nccl_types.hpp"
#include "way_text.hpp"

namespace waywiser_nccl {

// The plan's rows for one communicator, read when it forms: a look-up neither locks nor allocates.
class TunedCommunicator {
 public:
  // Throws NothingToSay.
  TunedCommunicator(const ww_plan& plan, std::size_t ranks, const std::string& version);
  // Of no rows.
  TunedCommunicator() = default;

  // `bytes` as NCCL counts them: of all blocks. nullptr: NCCL decides.
  const Way* find(int collective, std::size_t bytes) const noexcept;

 private:
  struct Row {
    std::size_t from, to;  // both included; of the block of a rank where ranks have blocks
    Way way;
  };

  std::size_t ranks_ = 1;
  std::array<std::vector<Row>, collectives> rows_;
};

}  // namespace waywiser_nccl
