#include "waywiser/comm/bootstrap/joining.hpp"

#include <poll.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "waywiser/base/error.hpp"
#include "waywiser/comm/bootstrap/handshake.hpp"
#include "waywiser/comm/bootstrap/meeting_socket.hpp"
#include "waywiser/comm/bootstrap/root_network.hpp"

namespace waywiser {
namespace {

constexpr Seconds before_next_try = 5e-3, longest_before_next_try = 0.1;
constexpr Seconds look_again_after = 0.25, again_patience = 2;
constexpr Seconds verdict_patience = 2;  // the host may have come later, and it knows who is missing
constexpr Seconds farewell_patience = 0.5;
constexpr std::size_t largest_answer = 4096, longest_above = 512, largest_introduction = 80 << 10;

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

// The host has refused this rank for good: retrying is useless.
class Refusal : public Error {
 public:
  using Error::Error;
};

// The host has not admitted this rank, which may retry: there are too many connections (unavailable), or the connection
// has ended (io).
class NotNow : public Error {
 public:
  using Error::Error;
};

// Whom this rank comes to: rank 0, or the rank above it.
struct Host {
  int rank;
  Launch launch;  // of this rank, with the host's address or the name of its socket

  std::string name() const { return "rank " + std::to_string(rank); }
};

std::string job_below(const std::string& job, int rank) { return job + " below rank " + std::to_string(rank); }

void check_refusal(const Frame& frame, const std::string& host) {
  if (frame.kind == FrameKind::refused)
    throw Refusal(ErrorKind::invalid_input, host + " refused this rank: " + reason_in(frame));
}

Frame heard(Connection& line, const std::string& host, Deadline deadline) {
  Frame frame;
  try {
    frame = line.receive(deadline);
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
  if (!is_welcome(*line, visit, host, deadline)) return {};
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

std::unique_ptr<Connection> come_to(const Host& host, const Joining& mine, Deadline deadline) {
  auto line = host.launch.root ? join_at(host, mine, deadline) : join_here(host, mine, deadline);
  line->set_limit(largest_introduction * static_cast<std::size_t>(host.launch.size));
  return line;
}

// What rank 0 or the rank above answers when all have come. It knew this rank: there is no second try.
Frame answer_of(Connection& line, const std::string& host, Deadline deadline) {
  try {
    return heard(line, host, Deadline::in(deadline.left() + verdict_patience));
  } catch (const NotNow& error) {
    throw Error(error.kind(), error.what());
  }
}

void read_table(const Frame& frame, const Launch& launch, Muster& muster) {
  if (frame.kind != FrameKind::table) throw Error(ErrorKind::invalid_input, "there is no table of ranks");
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

// Nothing comes from the host now but a refusal: the waits of this thread end with it.
void check_line(Connection& line, const std::string& host) {
  try {
    if (const auto frame = line.poll_frame()) check_refusal(*frame, host);
  } catch (const Refusal&) {
    throw;
  } catch (const Error& error) {
    throw Error(error.kind(), host + " while the group formed: " + error.what());
  }
}

// Where this rank receives those below it.
struct Doorway {
  Doorway(const Launch& launch, Joining& mine) {
    const RankTree tree{launch.rank, launch.size, mine.branches};
    if (!tree.is_above_any(launch.rank)) return;
    if (!launch.root) {
      const std::string job = job_below(launch.job, launch.rank);
      socket = std::make_unique<MeetingSocket>(job);
      listener = socket->take_listener();
      where = meeting_path(job).string();
      return;
    }
    Endpoint here{address_towards(*launch.root), 0};
    listener = listen_on(here);
    here.port = port_of(listener);
    where = mine.listens = text(here);
  }

  std::unique_ptr<MeetingSocket> socket;
  Descriptor listener;
  std::string where;
};

Host host_above(const Frame& branch, const Launch& launch, int branches) {
  const RankTree tree{launch.rank, launch.size, branches};
  Host above{tree.above(), launch};
  WireReader reader(branch.body, "address of the rank above");
  const std::string where = reader.text(longest_above);
  reader.end();
  if (launch.root)
    above.launch.root = parse_endpoint(where);
  else
    above.launch.job = job_below(launch.job, above.rank);
  return above;
}

// Its place in the tree, once rank 0 has admitted it.
class Seat {
 public:
  Seat(const Launch& launch, const Joining& mine, std::unique_ptr<Connection> root,
       const std::function<bool()>& interrupted)
      : launch_(launch), mine_(mine), interrupted_(interrupted), root_(std::move(root)) {}
  Seat(Seat&&) = delete;
  Muster take(Doorway& doorway, Deadline deadline) {
    Frame table = answer_of(*root_, above_.name(), deadline);
    const Interruptible watching(is_over_);
    try {
      if (table.kind == FrameKind::branch) table = come_above(table, deadline);
      Muster muster;
      muster.branches = mine_.branches;
      read_table(table, launch_, muster);
      if (doorway.listener.open())
        muster.lines =
            Reception(launch_, mine_, std::move(doorway.listener), doorway.where).wait_for_those_below(table, deadline);
      if (line_) root_->ask(FrameKind::leave, {}, Deadline::in(farewell_patience));
      if (!line_) line_ = std::move(root_);
      line_->set_limit(largest_answer);
      muster.lines[above_.rank] = std::move(line_);
      return muster;
    } catch (const Error& error) {
      if (root_ && error.kind() != ErrorKind::interrupted)
        root_->ask(FrameKind::refused, refused_frame(error.what()).body, Deadline::in(farewell_patience));
      throw;
    }
  }

 private:
  Frame come_above(const Frame& branch, Deadline deadline) {
    above_ = host_above(branch, launch_, mine_.branches);
    auto line = come_to(above_, mine_, deadline);
    Frame table = answer_of(*line, above_.name(), deadline);
    line_ = std::move(line);
    return table;
  }
  bool is_over() {
    if (root_) check_line(*root_, "rank 0");
    if (line_) check_line(*line_, above_.name());
    return interrupted_ && interrupted_();
  }

  const Launch& launch_;
  const Joining& mine_;
  const std::function<bool()>& interrupted_;
  const std::function<bool()> is_over_ = [this] { return is_over(); };
  std::unique_ptr<Connection> root_, line_;  // to the rank above, if that is not rank 0
  Host above_{0, launch_};
};

}  // namespace

Muster join(const Launch& launch, Joining mine, Deadline deadline, const std::function<bool()>& interrupted) {
  Doorway doorway(launch, mine);
  return Seat(launch, mine, come_to({0, launch}, mine, deadline), interrupted).take(doorway, deadline);
}

}  // namespace waywiser
