#pragma once

#include <map>
#include <memory>
#include <vector>

#include "waywiser/comm/bootstrap/introduction.hpp"
#include "waywiser/comm/bootstrap/launch.hpp"
#include "waywiser/comm/bootstrap/rank_tree.hpp"
#include "waywiser/comm/bootstrap/tcp.hpp"

namespace waywiser {

// A formed group: its ranks, and the connections that stay open as life-lines.
struct Muster {
  std::vector<Introduction> ranks;
  std::map<int, std::unique_ptr<Connection>> lines;  // to the neighbours in the tree
  int branches = usual_branches;                     // of the tree
  std::uint64_t tag_key = 0;                         // secret of the job
};

// The introduction of this process, without the parts of UCX and GPUs.
Introduction introduce(const Launch& launch);

// Collective; each rank gets the introductions of all. All ranks come to rank 0, which then tells each that is not
// below it in the tree where the rank above it listens; the table of ranks goes down the tree. On one machine the ranks
// meet at a socket in the runtime folder, and the kernel confirms that each belongs to this user. At an address, a rank
// proves that it knows the secret before it receives anything, the root proves the same, and all later frames are
// sealed. Strangers cannot stop or delay the group. Throws timeout, naming the missing ranks; invalid_input with the
// difference if a rank does not fit; io; unavailable for an address without libcrypto. `announce`: rank 0 tells where
// it listens: port 0 on one machine. `interrupted`: polled while waiting; throws interrupted. `branches`: of the tree,
// equal in all ranks.
Muster meet(const Launch& launch, const Introduction& mine, Deadline deadline,
            const std::function<void(const Endpoint&)>& announce = {}, const std::function<bool()>& interrupted = {},
            int branches = branches_of_tree());

}  // namespace waywiser
