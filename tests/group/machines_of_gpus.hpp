#pragma once

#include "tests/comm/test_ranks.hpp"

namespace waywiser {

// The number of ranks on each machine; each rank has its own virtual GPU.
struct MachinesOfGpus : TestRanks {
  MachinesOfGpus(int machines, int ranks_of_each) : TestRanks(machines * ranks_of_each) {
    virtual_gpus = ranks_of_each;
    machines_apart = true;
    ranks_of_machine = ranks_of_each;
  }
};

}  // namespace waywiser
