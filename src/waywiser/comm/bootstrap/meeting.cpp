#include "waywiser/comm/bootstrap/meeting.hpp"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "waywiser/base/error.hpp"
#include "waywiser/base/launchers.hpp"
#include "waywiser/base/version.hpp"
#include "waywiser/comm/bootstrap/handshake.hpp"
#include "waywiser/comm/bootstrap/job_network.hpp"
#include "waywiser/comm/bootstrap/kept_listener.hpp"
#include "waywiser/comm/bootstrap/meeting_socket.hpp"
#include "waywiser/comm/bootstrap/reception.hpp"
#include "waywiser/comm/bootstrap/tcp.hpp"
#include "waywiser/comm/bootstrap/unix_socket.hpp"

namespace waywiser {
namespace {

constexpr Seconds before_next_try = 5e-3, longest_before_next_try = 0.1;
constexpr Seconds look_again_after = 0.25, again_patience = 2;
constexpr Seconds verdict_patience = 2;  // rank 0 may have come later, and it knows who is missing
constexpr std::size_t largest_answer = 4096;
constexpr std::size_t largest_introduction = 80 << 10;

// Many ranks that try often would take the core from the one that they wait for.
class Naps {
 public:
  void take() {
    std::this_thread::sleep_for(std::chrono::duration<Seconds>(next_));
    next_ = std::min(1.5 * next_, longest_before_next_try);
  }

 private:
  Seconds next_ = before_next_try;
};

// Rank 0 has refused this rank for good: retrying is useless.
class Refusal : public Error {
 public:
  using Error::Error;
};

// Rank 0 has not admitted this rank, which may retry: there are too many connections (unavailable), or the connection
// has ended (io).
class NotNow : public Error {
 public:
  using Error::Error;
};

Frame expect(Connection& line, FrameKind kind, Deadline deadline) {
  Frame frame;
  try {
    frame = line.receive(deadline);
  } catch (const Error& error) {
    const std::string why = std::string("rank 0 while the group formed: ") + error.what();
    if (error.kind() == ErrorKind::io) throw NotNow(ErrorKind::io, why);
    throw Error(error.kind(), why);
  }
  if (frame.kind == FrameKind::later) throw NotNow(ErrorKind::unavailable, "rank 0 has too many connections");
  if (frame.kind == FrameKind::refused)
    throw Refusal(ErrorKind::invalid_input, "rank 0 refused this rank: " + reason_in(frame));
  if (frame.kind != kind)
    throw Error(ErrorKind::invalid_input, "the process at rank 0's address is not rank 0 of a job");
  return frame;
}

void prove(Connection& line, const Launch& launch, Deadline deadline) {
  Handshake words{static_cast<std::uint32_t>(launch.rank), random_nonce(), {}};
  line.ask(FrameKind::hello, hello_bytes({protocol_version, words.rank, words.member}), deadline);
  words.root = read_nonce(expect(line, FrameKind::challenge, deadline));
  line.ask(FrameKind::proof, words.member_proof(launch.secret), deadline);
  if (!equal(read_digest(expect(line, FrameKind::welcome, deadline)), words.root_proof(launch.secret)))
    throw Error(ErrorKind::invalid_input, "the process at rank 0's address does not know the secret of this job");
  line.seal(words.member_seal(launch.secret));
}

std::vector<std::byte> bytes_of(const Introduction& mine) {
  WireWriter writer;
  write(writer, mine);
  return writer.bytes();
}

void read_table(const Frame& frame, const Launch& launch, Muster& muster) {
  WireReader reader(frame.body, "table of ranks");
  for (int rank = 0; rank < launch.size; ++rank) {
    muster.ranks.push_back(read_introduction(reader));
    if (muster.ranks.back().rank != static_cast<std::uint32_t>(rank)) reader.refuse("the ranks are not in order");
  }
  Nonce word{};
  std::ranges::copy(reader.raw(word.size()), word.begin());
  reader.end();
  muster.tag_key = launch.root ? tag_key(launch.secret, word) : tag_key(word);
}

Muster take_table(std::unique_ptr<Connection> line, const Launch& launch, Deadline deadline) {
  line->set_limit(largest_introduction * static_cast<std::size_t>(launch.size));
  Muster muster;
  try {
    read_table(expect(*line, FrameKind::table, Deadline::in(deadline.left() + verdict_patience)), launch, muster);
  } catch (const NotNow& error) {  // rank 0 knew this rank
    throw Error(error.kind(), error.what());
  }
  line->set_limit(largest_answer);
  muster.lines[0] = std::move(line);
  return muster;
}

std::unique_ptr<Connection> prove_at(const Endpoint& root, const Launch& launch, Deadline connect_by,
                                     Deadline deadline) {
  auto line = std::make_unique<Connection>(connect_to(root, connect_by), largest_answer);
  prove(*line, launch, deadline);
  return line;
}

// If a rank has ended, rank 0 treats it as dead unless it returns soon.
Muster join_at(const Endpoint& root, const Launch& launch, const Introduction& mine, Deadline deadline) {
  Deadline connect_by = deadline;
  Naps naps;
  for (bool ended = false;; naps.take()) {
    throw_if_interrupted();
    try {
      auto line = prove_at(root, launch, connect_by, deadline);
      line->ask(FrameKind::join, bytes_of(mine), deadline);
      return take_table(std::move(line), launch, deadline);
    } catch (const NotNow& error) {
      if (connect_by.passed()) throw Error(error.kind(), error.what());
      const bool again = std::exchange(ended, error.kind() == ErrorKind::io);
      if (!ended) connect_by = deadline;
      if (ended && !again) connect_by = Deadline::in(std::min(again_patience, deadline.left()));
    }
  }
}

// False: another rank 0 has come to the same place. Throws NotNow, timeout, and invalid_input if the other side is not
// a rank 0.
bool is_welcome(Connection& line, const MeetingVisit& visit, Deadline deadline) {
  while (!wait_for_socket(line.number(), POLLIN, Deadline::in(std::min(look_again_after, deadline.left())))) {
    if (visit.is_outdated()) return false;
    if (deadline.passed()) throw Error(ErrorKind::timeout, "it does not answer");
  }
  expect(line, FrameKind::welcome, Deadline::in(std::min(look_again_after, deadline.left())));
  return true;
}

std::unique_ptr<Connection> come_in(const Launch& launch, const Introduction& mine, Deadline deadline) {
  MeetingVisit visit(launch.job);
  if (!visit.open()) return {};
  auto line = std::make_unique<Connection>(visit.take_line(), largest_answer);
  const Hello hello{protocol_version, static_cast<std::uint32_t>(launch.rank), {}};
  line->ask(FrameKind::hello, hello_bytes(hello), deadline);
  line->ask(FrameKind::join, bytes_of(mine), deadline);
  if (!is_welcome(*line, visit, deadline)) return {};
  return line;
}

// The listener may belong to an earlier job of the same name whose rank 0 was killed or stopped: then it is replaced.
Muster join_here(const Launch& launch, const Introduction& mine, Deadline deadline) {
  std::string problem;
  for (Naps naps; !deadline.passed(); naps.take()) {
    throw_if_interrupted();
    std::unique_ptr<Connection> line;
    try {
      line = come_in(launch, mine, deadline);
    } catch (const Refusal&) {
      throw;
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::interrupted) throw;
      problem = std::string(" (") + error.what() + ")";
    }
    if (line) return take_table(std::move(line), launch, deadline);
  }
  throw Error(ErrorKind::timeout, "rank " + std::to_string(launch.rank) + ": rank 0 of job " + launch.job +
                                      " has not come to " + meeting_path(launch.job).string() + " in time" + problem);
}

Muster receive_here(const Launch& launch, const Introduction& mine, Deadline deadline,
                    const std::function<void(const Endpoint&)>& announce) {
  MeetingSocket socket(launch.job);
  if (announce) announce({});
  return Reception(launch, mine, socket.take_listener(), meeting_path(launch.job).string()).wait_for_all(deadline);
}

Muster receive_at(const Endpoint& root, const Launch& launch, const Introduction& mine, Deadline deadline,
                  const std::function<void(const Endpoint&)>& announce) {
  Descriptor listener = take_listener(root);
  if (!listener.open()) listener = listen_on(root);
  const Endpoint here{root.host, port_of(listener)};
  if (announce) announce(here);
  return Reception(launch, mine, std::move(listener), text(here)).wait_for_all(deadline);
}

Muster meet_others(const Launch& launch, const Introduction& mine, Deadline deadline,
                   const std::function<void(const Endpoint&)>& announce) {
  if (launch.rank != 0)
    return launch.root ? join_at(*launch.root, launch, mine, deadline) : join_here(launch, mine, deadline);
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
  if (launch.machine.empty()) mine.machine_id = is_within_a_machine(launch) ? mine.system : machine_id();
  mine.host = host_name();
  mine.process = static_cast<std::uint64_t>(::getpid());
  return mine;
}

Muster meet(const Launch& launch, const Introduction& mine, Deadline deadline,
            const std::function<void(const Endpoint&)>& announce, const std::function<bool()>& interrupted) {
  const Interruptible interruptible(interrupted);
  if (launch.rank == 0) sweep_runtime_folder();
  if (launch.size == 1) return {{mine}, {}, 0};
  if (launch.root && !why_no_crypto().empty())
    throw Error(ErrorKind::unavailable,
                "ranks that meet at an address prove to each other that they are of one job: " + why_no_crypto());
  try {
    return meet_others(launch, mine, deadline, announce);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::timeout) throw;
    const Started started = who_started();
    if (started.launcher != launch.launcher) throw;  // the program itself has said who belongs to the group
    throw Error(ErrorKind::timeout, std::string(error.what()) + "; " + started.claim);
  }
}

}  // namespace waywiser
