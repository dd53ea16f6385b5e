#pragma once

#include "waywiser/collective/host_collectives.hpp"
#include "waywiser/comm/peer_memory/exposed_memory.hpp"
#include "waywiser/group/gpu_calls.hpp"
#include "waywiser/group/group.hpp"
#include "waywiser/group/group_messages.hpp"
#include "waywiser/group/wanted_collective.hpp"

namespace waywiser {

// The parts of a group.
struct [[gnu::visibility("hidden")]] Group::State {
  State(std::shared_ptr<Session> session, Members members);

  Session& session() const noexcept { return core->session(); }
  // Runs a collective: on the GPUs if they can, else on the hosts.
  Future run(CollectiveCall wanted, ConstElements input, Elements output, Mode mode);
  // Checks the arguments first.
  Future run(WantedCollective wanted, Mode mode);

  const std::shared_ptr<GroupCore> core;  // shared with windows
  HostCollectives hosts;
  GroupMessages messages;
  const std::shared_ptr<ExposedMemory> exposed;
  GpuCalls gpus;
};

const std::shared_ptr<GroupCore>& core_of(const Group& group);
Future run(Group& group, const WantedCollective& wanted, Mode mode);

}  // namespace waywiser
