#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "waywiser/collective/device_schedule/program.hpp"
#include "waywiser/collective/device_schedule/program_algorithm.hpp"
#include "waywiser/comm/schedule.hpp"
#include "waywiser/device/region.hpp"

// Direct messages: the sender's kernel stores them into the receiver's array, without a slot, once the receiver has
// begun the same start.
namespace waywiser::program {

// A message that its receiver can take so.
struct DirectMessage {
  std::size_t step = 0;                   // of the receiver
  std::uint32_t sender = 0, message = 0;  // its number among those from this sender
  std::uint32_t array = 0;                // of the receiver
  std::uint64_t bytes = 0, offset = 0;    // in total; of `view` in the array
  View view;                              // without an address
};

struct DirectMessages {
  std::vector<DirectMessage> all;
  std::string why_slots;  // why a message that goes not by LL needs a slot; empty: none does
};

// The direct messages that a rank could receive: those for which that is chosen, if they are not reduced, into a block
// that is no list of elements, in memory that no step of an earlier round touches. `arrays`: the memory of the
// schedule's arrays. Throws like ProgramAlgorithms::of.
DirectMessages direct_messages(const Schedule& schedule, DataType type_of_call, std::span<const Region> arrays,
                               const ProgramAlgorithms& algorithms);

// The step of the sender that stores the data of its message number `message` to `receiver`. Empty: there is none.
std::optional<std::size_t> storing_step(const Schedule& schedule, int receiver, std::uint32_t message);

// The layout of a block that is no list of elements, with `size` bytes an element; without an address.
View layout_of(const Schedule& schedule, const Block& block, std::uint64_t size);

// The bytes from the beginning of a view to the end of its block of `bytes`; empty: they are too many to count.
std::optional<std::uint64_t> extent_of(const View& view, std::uint64_t bytes);

}  // namespace waywiser::program
