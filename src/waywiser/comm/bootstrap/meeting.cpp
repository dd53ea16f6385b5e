#include "waywiser/comm/bootstrap/meeting.hpp"

#include <unistd.h>

#include <utility>

#include "waywiser/base/error.hpp"
#include "waywiser/base/launchers.hpp"
#include "waywiser/base/version.hpp"
#include "waywiser/comm/bootstrap/job_network.hpp"
#include "waywiser/comm/bootstrap/joining.hpp"
#include "waywiser/comm/bootstrap/kept_listener.hpp"
#include "waywiser/comm/bootstrap/meeting_socket.hpp"
#include "waywiser/comm/bootstrap/unix_socket.hpp"

namespace waywiser {
namespace {

Muster receive_here(const Launch& launch, const Joining& mine, Deadline deadline,
                    const std::function<void(const Endpoint&)>& announce) {
  MeetingSocket socket(launch.job);
  if (announce) announce({});
  return Reception(launch, mine, socket.take_listener(), meeting_path(launch.job).string()).wait_for_all(deadline);
}

Muster receive_at(const Endpoint& root, const Launch& launch, const Joining& mine, Deadline deadline,
                  const std::function<void(const Endpoint&)>& announce) {
  Descriptor listener = take_listener(root);
  if (!listener.open()) listener = listen_on(root);
  const Endpoint here{root.host, port_of(listener)};
  if (announce) announce(here);
  return Reception(launch, mine, std::move(listener), text(here)).wait_for_all(deadline);
}

Muster meet_others(const Launch& launch, const Joining& mine, Deadline deadline,
                   const std::function<void(const Endpoint&)>& announce, const std::function<bool()>& interrupted) {
  if (launch.rank != 0) return join(launch, mine, deadline, interrupted);
  return launch.root ? receive_at(*launch.root, launch, mine, deadline, announce)
                     : receive_here(launch, mine, deadline, announce);
}

}  // namespace

Introduction introduce(const Launch& launch) {
  Introduction mine;
  mine.rank = static_cast<std::uint32_t>(launch.rank);
  mine.size = static_cast<std::uint32_t>(launch.size);
  mine.version = version();
  mine.system = system_id();
  mine.machine_id = launch.machine;
  if (launch.machine.empty()) mine.machine_id = is_within_a_machine(launch) ? mine.system.text() : machine_id();
  mine.host = host_name();
  mine.process = static_cast<std::uint64_t>(::getpid());
  return mine;
}

Muster meet(const Launch& launch, const Introduction& mine, Deadline deadline,
            const std::function<void(const Endpoint&)>& announce, const std::function<bool()>& interrupted,
            int branches) {
  const Interruptible interruptible(interrupted);
  if (launch.rank == 0) sweep_runtime_folder();
  if (launch.size == 1) {
    Muster alone;
    alone.ranks = {mine};
    return alone;
  }
  if (launch.root && !why_no_crypto().empty())
    throw Error(ErrorKind::unavailable,
                "ranks that meet at an address prove to each other that they are of one job: " + why_no_crypto());
  try {
    return meet_others(launch, {mine, branches}, deadline, announce, interrupted);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::timeout) throw;
    const Started started = who_started();
    if (started.launcher != launch.launcher) throw;  // the program itself has said who belongs to the group
    throw Error(ErrorKind::timeout, std::string(error.what()) + "; " + started.claim);
  }
}

}  // namespace waywiser
