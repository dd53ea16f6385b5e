#pragma once

#include "waywiser/collective/call.hpp"
#include "waywiser/collective/host_collectives.hpp"
#include "waywiser/comm/peer_memory/exposed_memory.hpp"
#include "waywiser/group/gpu_calls.hpp"
#include "waywiser/group/group.hpp"
#include "waywiser/group/group_messages.hpp"

namespace waywiser {

// The parts of a group.
struct [[gnu::visibility("hidden")]] Group::State {
  State(std::shared_ptr<Session> session, Members members);

  Session& session() const noexcept { return core->session(); }
  // Runs a collective: on the GPUs if they can, else on the hosts.
  Future run(CollectiveCall wanted, ConstElements input, Elements output, Mode mode);

  const std::shared_ptr<GroupCore> core;  // shared with windows
  HostCollectives hosts;
  GroupMessages messages;
  const std::shared_ptr<ExposedMemory> exposed;
  GpuCalls gpus;
};

const std::shared_ptr<GroupCore>& core_of(const Group& group);
// Runs a collective: on the GPUs if they can, else on the hosts. The caller holds the lock of core_of(group).
Future run(Group& group, CollectiveCall wanted, ConstElements input, Elements output, Mode mode);

}  // namespace waywiser
