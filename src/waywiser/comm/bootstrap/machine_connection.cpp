#include "waywiser/comm/bootstrap/machine_connection.hpp"

#include "waywiser/base/error.hpp"
#include "waywiser/comm/bootstrap/tcp.hpp"

namespace waywiser {

MachineConnection meet_other_machine(const Launch& launch, Deadline deadline) {
  if (launch.size != 2)
    throw Error(ErrorKind::invalid_input,
                "the paths between two machines are measured by two ranks, one on each; this "
                "job has " +
                    std::to_string(launch.size));
  const Introduction mine = introduce(launch);
  const int other = 1 - launch.rank;
  Muster muster = meet(launch, mine, deadline);
  Connection& line = *muster.lines.at(other);
  // Ensures that the member has read the table and nothing else: only now may the root continue.
  if (launch.rank == 0)
    line.receive(deadline);
  else
    line.send(FrameKind::welcome, {}, deadline);
  const Introduction& theirs = muster.ranks.at(static_cast<std::size_t>(other));
  auto [socket, seal] = line.release();
  return {theirs, theirs.machine_id == mine.machine_id, PeerSocket(std::move(socket), seal)};
}

}  // namespace waywiser
