#pragma once

#include <map>
#include <memory>
#include <vector>

#include "waywiser/comm/bootstrap/introduction.hpp"
#include "waywiser/comm/bootstrap/launch.hpp"
#include "waywiser/comm/bootstrap/tcp.hpp"

namespace waywiser {

// A group that has formed: who is in it, and the connections that stay open as life-lines.
struct Muster {
  std::vector<Introduction> ranks;
  std::map<int, std::unique_ptr<Connection>> lines;  // the root's: to each rank; a member's: to rank 0
  std::uint64_t tag_key = 0;                         // known to nobody else; 0 where no network is used
};

// This process as a rank, but for what UCX and GPUs add to it.
Introduction introduce(const Launch& launch);

// All ranks call it; each gets what all have told. On one machine the kernel says that it is this user who comes, to a
// socket in the runtime folder. At an address of the launch a rank shows that it knows the secret before it hears
// anything, the root shows it back, and all that follows is sealed. Nobody else stops or delays the group. Throws
// timeout naming who is missing; invalid_input with the difference when one rank does not fit; io; unavailable where an
// address is given and there is no libcrypto.
// `announce`: rank 0 tells where it listens: port 0 on one machine. `interrupted`: asked while it waits; throws
// interrupted.
Muster meet(const Launch& launch, const Introduction& mine, Deadline deadline,
            const std::function<void(const Endpoint&)>& announce = {}, const std::function<bool()>& interrupted = {});

}  // namespace waywiser
