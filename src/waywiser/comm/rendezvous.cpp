#include "waywiser/comm/rendezvous.hpp"

#include <unistd.h>

#include <optional>
#include <thread>

#include "waywiser/base/error.hpp"
#include "waywiser/base/version.hpp"
#include "waywiser/comm/handshake.hpp"
#include "waywiser/comm/reception.hpp"
#include "waywiser/comm/runtime_folder.hpp"

namespace waywiser {
namespace {

constexpr auto between_attempts = std::chrono::milliseconds(5);
constexpr Seconds stale_file_patience = 0.5;
constexpr std::size_t largest_answer = 4096;
constexpr std::size_t largest_introduction = 80 << 10;

[[noreturn]] void root_says(const Frame& frame) {
  throw Error(ErrorKind::invalid_input, "rank 0 refused this rank: " + reason_in(frame));
}

Frame expect(Connection& line, FrameKind kind, Deadline deadline) {
  Frame frame;
  try {
    frame = line.receive(deadline);
  } catch (const Error& error) {
    throw Error(error.kind(), std::string("rank 0 while the group formed: ") + error.what());
  }
  if (frame.kind == FrameKind::refused) root_says(frame);
  if (frame.kind != kind) throw Error(ErrorKind::invalid_input, "what listens at rank 0's address is no rank 0");
  return frame;
}

void prove(Connection& line, const Launch& launch, Deadline deadline) {
  Handshake words{static_cast<std::uint32_t>(launch.rank), random_nonce(), {}};
  line.send(FrameKind::hello, hello_bytes({protocol_version, words.rank, words.member}), deadline);
  words.root = read_nonce(expect(line, FrameKind::challenge, deadline));
  line.send(FrameKind::proof, words.member_proof(launch.secret), deadline);
  if (!equal(read_digest(expect(line, FrameKind::welcome, deadline)), words.root_proof(launch.secret)))
    throw Error(ErrorKind::invalid_input, "what listens at rank 0's address does not know the secret of this job");
}

std::vector<Introduction> read_table(const Frame& frame, int size) {
  WireReader reader(frame.body, "table of ranks");
  std::vector<Introduction> ranks;
  for (int rank = 0; rank < size; ++rank) {
    ranks.push_back(read_introduction(reader));
    if (ranks.back().rank != static_cast<std::uint32_t>(rank)) reader.refuse("the ranks are not in order");
  }
  reader.end();
  return ranks;
}

Muster join_at(const Endpoint& root, const Launch& launch, const Introduction& mine, Deadline connect_by,
               Deadline deadline) {
  auto line = std::make_unique<Connection>(connect_to(root, connect_by), largest_answer);
  prove(*line, launch, deadline);
  WireWriter writer;
  write(writer, mine);
  line->set_limit(largest_introduction * static_cast<std::size_t>(launch.size));
  line->send(FrameKind::join, writer.bytes(), deadline);
  Muster muster{read_table(expect(*line, FrameKind::table, deadline), launch.size), {}};
  line->set_limit(largest_answer);
  muster.lines[0] = std::move(line);
  return muster;
}

// The file may be of an earlier job of the same name whose rank 0 was killed: then nobody listens, or it is replaced.
Muster join_by_file(Launch launch, const Introduction& mine, Deadline deadline) {
  const bool given = !launch.secret.empty();
  while (!deadline.passed()) {
    if (const auto meeting = MeetingFile::read(launch.job)) {
      if (!given) launch.secret = meeting->secret;
      try {
        return join_at({"127.0.0.1", meeting->port}, launch, mine, Deadline::in(stale_file_patience), deadline);
      } catch (const Error& error) {
        const auto again = MeetingFile::read(launch.job);
        const bool replaced = again && (again->port != meeting->port || again->secret != meeting->secret);
        if (error.kind() != ErrorKind::timeout && !replaced) throw;
      }
    }
    std::this_thread::sleep_for(between_attempts);
  }
  throw Error(ErrorKind::timeout, "rank " + std::to_string(launch.rank) + ": rank 0 of job " + launch.job +
                                      " has not come to " + runtime_folder().string() + " in time");
}

Muster receive_as_root(Launch launch, const Introduction& mine, Deadline deadline,
                       const std::function<void(const Endpoint&)>& announce) {
  const Endpoint here = launch.root.value_or(Endpoint{});
  Descriptor listener = listen_on(here);
  if (announce) announce({here.host, port_of(listener)});
  std::optional<MeetingFile> file;
  if (!launch.root) {
    const std::string written = launch.secret.empty() ? launch.secret = random_secret() : "given";
    file.emplace(launch.job, Meeting{port_of(listener), written});
  }
  return Reception(launch, mine, std::move(listener)).wait_for_all(deadline);
}

}  // namespace

Introduction introduce(const Launch& launch) {
  Introduction mine;
  mine.rank = static_cast<std::uint32_t>(launch.rank);
  mine.size = static_cast<std::uint32_t>(launch.size);
  mine.version = version();
  mine.machine_id = launch.machine.empty() ? machine_id() : launch.machine;
  mine.host = host_name();
  mine.process = static_cast<std::uint64_t>(::getpid());
  return mine;
}

Muster meet(const Launch& launch, const Introduction& mine, Deadline deadline,
            const std::function<void(const Endpoint&)>& announce) {
  if (launch.size == 1) return {{mine}, {}};
  if (launch.rank == 0) return receive_as_root(launch, mine, deadline, announce);
  if (launch.root) return join_at(*launch.root, launch, mine, deadline, deadline);
  return join_by_file(launch, mine, deadline);
}

}  // namespace waywiser
