#pragma once

#include <span>
#include <vector>

#include "waywiser/collective/device_schedule/landing_plan.hpp"
#include "waywiser/collective/device_schedule/program.hpp"
#include "waywiser/comm/schedule.hpp"

namespace waywiser::program {

// The addresses of a schedule's buffers, as the GPU that runs it reaches them.
struct Addresses {
  std::byte *input = nullptr, *output = nullptr, *scratch = nullptr;
  std::vector<std::byte*> arrays;          // all arrays of the schedule
  std::vector<std::byte*> landing;         // of all ranks
  const std::uint64_t* offsets = nullptr;  // the future address of Translation::offsets
  // By step: where a direct message is stored, in the receiver's array; for its receiver any address. Others have none.
  std::vector<View> direct = {};
};

struct Translation {
  std::vector<Instruction> instructions;
  std::vector<std::uint32_t> rounds;
  std::vector<std::uint64_t> offsets;
  std::uint32_t gives_to = 0, takes_from = 0;  // ranks, as bits
  std::uint32_t blocks = 1;
  Form form = Form::any;
};

// The most offsets that the program of a schedule needs.
std::size_t offsets_of(const Schedule& schedule);

// Translates a valid schedule that matches those of the other ranks (`plans`) into a program. `messages`: those with
// the directs of `addresses`. Its blocks wait for each other, so there must not be more of them than multiprocessors.
Translation translate(const Schedule& schedule, DataType type_of_call, ReduceOp op, const Addresses& addresses,
                      const MessagePlans& messages, std::span<const LandingPlan> plans, int multiprocessors);

}  // namespace waywiser::program
