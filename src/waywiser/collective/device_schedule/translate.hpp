#pragma once

#include <span>
#include <vector>

#include "waywiser/collective/device_schedule/landing_plan.hpp"
#include "waywiser/collective/device_schedule/program.hpp"
#include "waywiser/comm/schedule.hpp"

namespace waywiser::program {

// Where the buffers of a schedule lie, as the GPU that runs it reaches them.
struct Addresses {
  std::byte *input = nullptr, *output = nullptr, *scratch = nullptr;
  std::vector<std::byte*> arrays;          // all of the schedule's
  std::vector<std::byte*> landing;         // of all ranks
  const std::uint64_t* offsets = nullptr;  // where Translation::offsets will lie
};

struct Translation {
  std::vector<Instruction> instructions;
  std::vector<std::uint32_t> rounds;
  std::vector<std::uint64_t> offsets;
  std::uint32_t gives_to = 0, takes_from = 0;  // ranks, as bits
  std::uint32_t blocks = 1;
};

// What the program of a schedule takes at most: its offsets.
std::size_t offsets_of(const Schedule& schedule);

// A schedule that is valid and fits to those of the other ranks (`plans`), as a program. Its blocks wait for one
// another: no more than the GPU has multiprocessors.
Translation translate(const Schedule& schedule, DataType type_of_call, ReduceOp op, const Addresses& addresses,
                      std::span<const LandingPlan> plans, int multiprocessors);

}  // namespace waywiser::program
