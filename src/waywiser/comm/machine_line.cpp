#include "waywiser/comm/machine_line.hpp"

#include <unistd.h>

#include "waywiser/base/error.hpp"
#include "waywiser/base/version.hpp"

namespace waywiser {
namespace {

Introduction introduce(const Launch& launch) {
  Introduction mine;
  mine.rank = static_cast<std::uint32_t>(launch.rank);
  mine.size = static_cast<std::uint32_t>(launch.size);
  mine.version = version();
  mine.machine_id = machine_id();
  mine.host = host_name();
  mine.process = static_cast<std::uint64_t>(::getpid());
  return mine;
}

}  // namespace

MachineLine meet_other_machine(const Launch& launch, Deadline deadline) {
  if (launch.size != 2)
    throw Error(ErrorKind::invalid_input,
                "the road between two machines is measured by two ranks, one on each; this "
                "job has " +
                    std::to_string(launch.size));
  const Introduction mine = introduce(launch);
  const int other = 1 - launch.rank;
  Muster muster = meet(launch, mine, deadline);
  Connection& line = *muster.lines.at(other);
  // The member has read the table and nothing else: only now may the root go on.
  if (launch.rank == 0)
    line.receive(deadline);
  else
    line.send(FrameKind::welcome, {}, deadline);
  const Introduction& theirs = muster.ranks.at(static_cast<std::size_t>(other));
  return {theirs, theirs.machine_id == mine.machine_id, line.release()};
}

}  // namespace waywiser
