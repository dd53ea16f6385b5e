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

  Session& session() const noexcept { return hosts->session(); }
  // Runs a collective: on the GPUs if they can, else on the hosts.
  Future run(CollectiveCall wanted, ConstElements input, Elements output, Mode mode);

  const std::shared_ptr<HostCollectives> hosts;  // shared with windows
  GroupMessages messages;
  const std::shared_ptr<ExposedMemory> exposed;
  GpuCalls gpus;
};

// For what is built on groups: messages of its own, between the ranks of a group of its own.
const std::shared_ptr<HostCollectives>& hosts_of(const Group& group);
// Runs a collective: on the GPUs if they can, else on the hosts. The caller holds the lock of hosts_of(group).
Future run(Group& group, CollectiveCall wanted, ConstElements input, Elements output, Mode mode);

// Nobody uses this group any more: closes as the destructor of the last Group does.
void leave_to_end(Group& group) noexcept;

// Keeps other threads out of the group between the calls of one. Throws invalid_input if one is in a call.
class [[nodiscard]] GroupHold {
 public:
  explicit GroupHold(const Group& group);
  GroupHold(const GroupHold&) = delete;
  GroupHold& operator=(const GroupHold&) = delete;
  ~GroupHold();

 private:
  HostCollectives& hosts_;
};
// Whether that rank of the group is on this rank's machine, as the job sees it.
bool same_machine(const Group& group, int rank);

}  // namespace waywiser
