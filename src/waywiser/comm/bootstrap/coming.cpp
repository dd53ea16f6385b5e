#include "waywiser/comm/bootstrap/coming.hpp"

#include <poll.h>

#include <algorithm>
#include <thread>

#include "waywiser/comm/bootstrap/farewell.hpp"
#include "waywiser/comm/bootstrap/handshake.hpp"
#include "waywiser/comm/bootstrap/meeting_socket.hpp"

namespace waywiser {
namespace {

constexpr Seconds before_next_try = 5e-3, longest_before_next_try = 0.1;
constexpr Seconds look_again_after = 0.25, again_patience = 2;
constexpr Seconds verdict_patience = 2;  // the host may have come later, and it knows who is missing
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

// The host has not admitted this rank, which may retry: there are too many connections (unavailable), or the connection
// has ended (io).
class NotNow : public Error {
 public:
  using Error::Error;
};

void check_refusal(const Frame& frame, const std::string& host) {
  if (frame.kind == FrameKind::refused) throw Refusal(host, reason_in(frame));
}

Frame heard(Connection& line, const std::string& host, Deadline deadline) {
  Frame frame;
  try {
    frame = line.receive(deadline);
  } catch (const Refusal&) {  // of another host, meanwhile
    throw;
  } catch (const Error& error) {
    const std::string why = host + " while the group formed: " + error.what();
    if (error.kind() == ErrorKind::io) throw NotNow(ErrorKind::io, why);
    throw Error(error.kind(), why);
  }
  if (frame.kind == FrameKind::later) throw NotNow(ErrorKind::unavailable, host + " has too many connections");
  check_refusal(frame, host);
  return frame;
}

Frame expect(Connection& line, FrameKind kind, const std::string& host, Deadline deadline) {
  Frame frame = heard(line, host, deadline);
  if (frame.kind != kind)
    throw Error(ErrorKind::invalid_input, "the process at " + host + "'s address is not " + host + " of a job");
  return frame;
}

void prove(Connection& line, const Host& host, Deadline deadline) {
  const Secret& secret = host.launch.secret;
  Handshake words{static_cast<std::uint32_t>(host.launch.rank), random_nonce(), {}};
  line.ask(FrameKind::hello, hello_bytes({protocol_version, words.rank, words.member}), deadline);
  words.root = read_nonce(expect(line, FrameKind::challenge, host.name(), deadline));
  line.ask(FrameKind::proof, words.member_proof(secret), deadline);
  if (!equal(read_digest(expect(line, FrameKind::welcome, host.name(), deadline)), words.root_proof(secret)))
    throw Error(ErrorKind::invalid_input,
                "the process at " + host.name() + "'s address does not know the secret of this job");
  line.seal(words.member_seal(secret));
}

std::unique_ptr<Connection> prove_at(const Host& host, Deadline connect_by, Deadline deadline) {
  auto line = std::make_unique<Connection>(connect_to(*host.launch.root, connect_by), largest_answer);
  prove(*line, host, deadline);
  return line;
}

// If a rank has ended, the host treats it as dead unless it returns soon.
std::unique_ptr<Connection> join_at(const Host& host, const Joining& mine, Deadline deadline) {
  Deadline connect_by = deadline;
  Naps naps;
  for (bool ended = false;; naps.take()) {
    throw_if_interrupted();
    try {
      auto line = prove_at(host, connect_by, deadline);
      line->ask(FrameKind::join, bytes_of(mine), deadline);
      return line;
    } catch (const NotNow& error) {
      if (connect_by.passed()) throw Error(error.kind(), error.what());
      const bool again = std::exchange(ended, error.kind() == ErrorKind::io);
      if (!ended) connect_by = deadline;
      if (ended && !again) connect_by = Deadline::in(std::min(again_patience, deadline.left()));
    }
  }
}

// False: another host has come to the same place. Throws NotNow, timeout, and invalid_input if the other side is not a
// host.
bool is_welcome(Connection& line, const MeetingVisit& visit, const Host& host, Deadline deadline) {
  while (!wait_for_socket(line.number(), POLLIN, Deadline::in(std::min(look_again_after, deadline.left())))) {
    if (visit.is_outdated()) return false;
    if (deadline.passed()) throw Error(ErrorKind::timeout, "it does not answer");
  }
  expect(line, FrameKind::welcome, host.name(), Deadline::in(std::min(look_again_after, deadline.left())));
  return true;
}

std::unique_ptr<Connection> come_in(const Host& host, const Joining& mine, Deadline deadline) {
  MeetingVisit visit(host.launch.job);
  if (!visit.open()) return {};
  auto line = std::make_unique<Connection>(visit.take_line(), largest_answer);
  const Hello hello{protocol_version, static_cast<std::uint32_t>(host.launch.rank), {}};
  line->ask(FrameKind::hello, hello_bytes(hello), deadline);
  line->ask(FrameKind::join, bytes_of(mine), deadline);
  try {
    if (!is_welcome(*line, visit, host, deadline)) return {};
  } catch (const Refusal& refusal) {  // of another host: this one may wait for this rank already
    say_farewell({line.get()}, refusal.reason);
    throw;
  }
  return line;
}

// The listener may belong to an earlier job of the same name whose host was killed or stopped: then it is replaced.
std::unique_ptr<Connection> join_here(const Host& host, const Joining& mine, Deadline deadline) {
  std::string problem;
  for (Naps naps; !deadline.passed(); naps.take()) {
    throw_if_interrupted();
    std::unique_ptr<Connection> line;
    try {
      line = come_in(host, mine, deadline);
    } catch (const Refusal&) {
      throw;
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::interrupted) throw;
      problem = std::string(" (") + error.what() + ")";
    }
    if (line) return line;
  }
  throw Error(ErrorKind::timeout, "rank " + std::to_string(host.launch.rank) + ": " + host.name() + " of job " +
                                      host.launch.job + " has not come to " + meeting_path(host.launch.job).string() +
                                      " in time" + problem);
}

}  // namespace

std::unique_ptr<Connection> come_to(const Host& host, const Joining& mine, Deadline deadline) {
  auto line = host.launch.root ? join_at(host, mine, deadline) : join_here(host, mine, deadline);
  line->set_limit(largest_introduction * static_cast<std::size_t>(host.launch.size));
  return line;
}

Frame answer_of(Connection& line, const std::string& host, Deadline deadline) {
  try {
    return heard(line, host, Deadline::in(deadline.left() + verdict_patience));
  } catch (const NotNow& error) {
    throw Error(error.kind(), error.what());
  }
}

void check_line(Connection& line, const std::string& host) {
  std::optional<Frame> frame;
  try {
    frame = line.poll_frame();
  } catch (const Error& error) {
    throw Error(error.kind(), host + " while the group formed: " + error.what());
  }
  if (frame) check_refusal(*frame, host);
}

}  // namespace waywiser
