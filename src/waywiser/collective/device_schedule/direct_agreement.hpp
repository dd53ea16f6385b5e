#pragma once

#include <memory>
#include <string>
#include <vector>

#include "waywiser/collective/device_schedule/device_execution.hpp"
#include "waywiser/comm/message/rank_exchange.hpp"
#include "waywiser/comm/peer_memory/peer_memory.hpp"

namespace waywiser {

// The direct messages of a schedule: those whose array its owner can share and the sender's GPU can open.
struct DirectAgreement {
  std::vector<program::View> steps;                   // for DeviceExecution::set_direct()
  std::vector<std::shared_ptr<const Memory>> opened;  // other ranks' arrays, into which this rank's GPU stores
  std::string why_slots;  // why this rank receives a message in a slot that goes not by LL; empty: it receives none so

  // Collective. `execution`: of this rank; nullptr: it has failed, and takes part without messages.
  static DirectAgreement of_all(RankExchange& exchange, PeerMemory& peers, const Schedule& schedule,
                                const DeviceExecution* execution, Place gpu, const Stream& stream);
};

}  // namespace waywiser
