#pragma once

#include <random>
#include <vector>

#include "tests/collective/evaluator.hpp"
#include "waywiser/collective/neighbor_exchange/array_exchange.hpp"

namespace waywiser {

// An exchange of all ranks: arrays of all types; contiguous parts, rows of boxes and lists; several messages between
// two ranks or with a rank itself, none between others. The seed draws it.
struct MadeUpExchange {
  MadeUpExchange(int ranks, std::uint64_t seed, std::size_t most);

  std::vector<Schedule> schedules() const;

  int ranks;
  std::vector<std::vector<ArrayExchange>> of;  // each rank

 private:
  ArrayPart part(DataType type, std::size_t count);
  std::mt19937_64 generator_;
};

// Schedules made by hand that put, signal and wait in a ring: packed out of rows, unpacked into a list, and a signal
// alone.
std::vector<Schedule> made_up_puts(int ranks, std::size_t count);
// The arrays of a schedule: given ones with values, all others with garbage.
std::vector<std::vector<std::byte>> made_up_arrays(const Schedule& schedule);

}  // namespace waywiser
