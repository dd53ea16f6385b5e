#pragma once

#include <string>
#include <vector>

#include "waywiser/base/units.hpp"
#include "waywiser/collective/call.hpp"
#include "waywiser/collective/on_stream/copy_pipeline.hpp"

namespace waywiser {

// The memory of each rank into which the copy engines of the others write: slots that the steps of a call use in turn,
// with an area for each other rank.
struct CopyLanding {
  static constexpr std::size_t slots = CopyPipeline::slots;

  int ranks = 2;
  Bytes area = 0;  // what one rank sends another in one step at most, a multiple of CopyPipeline::alignment

  static CopyLanding of(int ranks, Bytes slot) {
    return {ranks, slot / static_cast<Bytes>(ranks - 1) / CopyPipeline::alignment * CopyPipeline::alignment};
  }
  Bytes bytes() const { return slots * static_cast<Bytes>(ranks - 1) * area; }
  // Where `sender` writes in the memory of `receiver` in step `step`.
  Bytes at(std::size_t step, int receiver, int sender) const {
    const auto place = static_cast<Bytes>(sender - (sender > receiver ? 1 : 0));
    return (step % slots * static_cast<Bytes>(ranks - 1) + place) * area;
  }
};

// One step of a rank: it copies to others, waits until all ranks have done so, and takes what has arrived.
struct CopyStep {
  struct Push {
    int to = 0;
    bool of_output = false;  // else of the input
    Bytes from = 0, bytes = 0;
  };
  struct Take {
    int from = 0;
    Bytes to = 0, bytes = 0;  // in the output
  };

  std::vector<Push> pushes;
  std::vector<Take> takes;  // copied to the output
  // Instead of takes: the parts of all others and this rank's part of the input are added up into the output.
  Bytes own = 0, sum = 0, summed = 0;  // where in the input and in the output; bytes, 0: nothing is added up
  int after = -1;                      // the step whose results the pushes send on; -1: none
};

// Why copies do not serve the call; empty: they do. The same at all ranks.
std::string why_no_copies(const CollectiveCall& call);
// The steps of a call, as many at all ranks. `pieces`: into how many each block is cut; at least as many as the landing
// needs.
std::vector<CopyStep> copy_steps(const CollectiveCall& call, const CopyLanding& landing, Bytes pieces);
// The size of the pieces; equal at all ranks.
Bytes copied_piece(const CollectiveCall& call, const CopyLanding& landing, Bytes pieces);

}  // namespace waywiser
