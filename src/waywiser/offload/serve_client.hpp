#pragma once

#include <functional>
#include <string>

#include "waywiser/group/group.hpp"
#include "waywiser/offload/worker.hpp"

namespace waywiser {

// A client and its worker form a group of two ranks.
inline constexpr int worker_rank = 0, client_rank = 1;
inline constexpr int request_tag = 1, array_tag = 2;

// What a worker says of itself now and then, and at the end.
struct WorkerState {
  Bytes used = 0;
  std::uint64_t requests = 0;
};

// Carries out the client's requests until it ends. Calls `tell` whenever the state has changed, at most five times
// in a second. `plain_at`: the address of this machine at which it waits for clients whose arrays go unencrypted;
// empty: none do. Throws what a group throws, and invalid_input for bytes that are no frame.
void serve_client(Group& group, RemoteWorker::Setup setup, const std::function<void(const WorkerState&)>& tell,
                  const std::string& plain_at = "");

}  // namespace waywiser
