#pragma once

#include "waywiser/collective/call.hpp"
#include "waywiser/collective/host_collectives.hpp"
#include "waywiser/comm/peer_memory/exposed_memory.hpp"
#include "waywiser/group/gpu_calls.hpp"
#include "waywiser/group/group.hpp"
#include "waywiser/group/group_messages.hpp"

namespace waywiser {

// What a group is made of.
struct [[gnu::visibility("hidden")]] Group::State {
  State(std::shared_ptr<Session> session, Members members);

  Session& session() const noexcept { return hosts->session(); }
  // A collective: by the GPUs where they can, else by the hosts. `wanted` without rank and ranks.
  Future run(const Call& call, const CollectiveCall& wanted, ConstElements input, Elements output, Mode mode);
  // The same for those that cannot have one array for both.
  Future run_apart(const Call& call, const CollectiveCall& wanted, ConstElements input, Elements output, Mode mode);

  const std::shared_ptr<HostCollectives> hosts;  // windows have it, too
  GroupMessages messages;
  const std::shared_ptr<ExposedMemory> exposed;
  GpuCalls gpus;
};

}  // namespace waywiser
