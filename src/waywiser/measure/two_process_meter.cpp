#include "waywiser/measure/two_process_meter.hpp"

#include <algorithm>

#include "waywiser/base/error.hpp"
#include "waywiser/base/timeout.hpp"
#include "waywiser/measure/channel_flags.hpp"
#include "waywiser/measure/flag_page.hpp"
#include "waywiser/transport/ucx/ucx_library.hpp"

namespace waywiser {
namespace {

constexpr std::string_view answer_name = "answer of the peer process";
constexpr BytesPerSecond slowest_rate = 20e6;
constexpr Bytes largest_copy = 1ull << 30;
constexpr std::size_t most_connections = 64;

std::string doing(Operation operation, Bytes bytes, const Path& path) {
  return std::string(name(operation)) + " of " + format_bytes(bytes) + " bytes, " + label(path) + ", " +
         pair_text(path);
}

void check_operation(Operation operation) {
  if (operation == Operation::loaded)
    throw Error(ErrorKind::unavailable, "loaded: one peer process serves one pair, this takes all of a class");
}

std::vector<std::string> peer_environment() {
  if (!ucx_library().usable()) return {};
  return {"WAYWISER_LIBUCP=" + ucx_library().path()};
}

}  // namespace

// A running peer and the connections that are open in both processes.
struct TwoProcessMeter::Session {
  Session(Platform& platform, std::unique_ptr<Peer> answering, std::unique_ptr<Flags> shared)
      : peer(std::move(answering)),
        flags(std::move(shared)),
        side(platform, Role::initiator, peer->channel(), *flags) {}

  std::unique_ptr<Peer> peer;
  std::unique_ptr<Flags> flags;
  PairSide side;
  NetworkSide other;                     // between machines
  std::map<std::string, Bytes> buffers;  // capacity by buffers_key
  std::map<std::string, Bytes> next;     // the slot whose turn it is, by buffers_key
  std::list<std::string> connections;    // connection_key, the last used at the end
};

TwoProcessMeter::TwoProcessMeter(Platform& platform, PlatformChoice choice, std::filesystem::path peer_program,
                                 LimitOf limit, Seconds patience)
    : platform_(platform),
      choice_(std::move(choice)),
      program_(std::move(peer_program)),
      limit_(std::move(limit)),
      patience_(patience) {}

TwoProcessMeter::TwoProcessMeter(Platform& platform, PlatformChoice choice, Connect connect, Seconds patience)
    : platform_(platform), choice_(std::move(choice)), connect_(std::move(connect)), patience_(patience) {}

TwoProcessMeter::~TwoProcessMeter() = default;

pid_t TwoProcessMeter::peer() const noexcept { return session_ ? session_->peer->id() : -1; }

std::unique_ptr<TwoProcessMeter::Session> TwoProcessMeter::open_session() const {
  if (between_machines()) {
    auto peer = std::make_unique<DistantPeer>(connect_());
    auto flags = std::make_unique<ChannelFlags>(peer->channel());
    return std::make_unique<Session>(platform_, std::move(peer), std::move(flags));
  }
  auto peer = std::make_unique<PeerProcess>(program_, peer_environment());
  auto flags = std::make_unique<FlagPage>(Role::initiator, Descriptor(), peer->channel());
  return std::make_unique<Session>(platform_, std::move(peer), std::move(flags));
}

void TwoProcessMeter::begin() {
  if (session_ && !session_->peer->channel().peer_ended()) return;
  session_.reset();
  auto fresh = open_session();
  PeerChannel& channel = fresh->peer->channel();
  const Seconds patience = usual_timeout();
  const Deadline deadline = Deadline::in(patience);
  std::vector<int> shared;
  if (const auto* page = dynamic_cast<const FlagPage*>(fresh->flags.get())) shared.push_back(page->descriptor());
  channel.send({{"do", shared.empty() ? "begin_between_machines" : "begin"},
                {"seconds", patience},
                {"platform", to_json(choice_)}},
               deadline, shared);
  const Json answer = channel.receive(deadline).first;
  if (answer.contains("error"))
    throw Error(ErrorKind::unavailable,
                "the peer process cannot begin: " + require_string(answer, "error", answer_name));
  if (between_machines())
    fresh->other =
        network_side_from_json(require(require(answer, "answer", answer_name), "side", answer_name), answer_name);
  session_ = std::move(fresh);
}

NetworkSide TwoProcessMeter::other_side() {
  begin();
  return session_->other;
}

// Replaces a peer after every failure: it may be anywhere in a transfer. Its last message is the best explanation.
void TwoProcessMeter::fail(const Error& problem, const std::string& doing) {
  std::string message = problem.what();
  ErrorKind kind = problem.kind();
  try {
    const Deadline soon = Deadline::in(session_ && session_->peer->channel().peer_ended() ? 0.2 : 0.0);
    while (session_) {
      const Json last = session_->peer->channel().receive(soon).first;
      if (!last.contains("error")) continue;
      message = "in the peer process: " + require_string(last, "error", answer_name);
      kind = static_cast<ErrorKind>(require_integer(last, "kind", answer_name, 0, 6));
      break;
    }
  } catch (const Error&) {  // it said nothing more
  }
  session_.reset();
  throw Error(kind, doing + ": " + message);
}

template <typename Work>
auto TwoProcessMeter::attempt(const std::string& what, Work work) {
  try {
    begin();
    return work();
  } catch (const Error& problem) {
    fail(problem, what);
  }
}

Json TwoProcessMeter::command(const Json& body, Seconds seconds, const Release& release) {
  Session& both = *session_;
  PeerChannel& channel = both.peer->channel();
  const Deadline deadline = Deadline::in(seconds);
  Json message = body;
  message["seconds"] = seconds;
  channel.send(message, deadline);
  const Json mine = both.side.perform(message, deadline, release);
  const Json theirs = channel.receive(Deadline::in(deadline.left() + 1)).first;
  if (theirs.contains("error"))
    throw Error(static_cast<ErrorKind>(require_integer(theirs, "kind", answer_name, 0, 6)),
                "in the peer process: " + require_string(theirs, "error", answer_name));
  return {{"mine", mine}, {"theirs", require(theirs, "answer", answer_name)}};
}

void TwoProcessMeter::open(const Path& path) {
  Session& both = *session_;
  const std::string key = connection_key(path);
  const auto found = std::ranges::find(both.connections, key);
  if (found != both.connections.end()) return both.connections.splice(both.connections.end(), both.connections, found);
  if (both.connections.size() >= most_connections) {
    command({{"do", "close"}, {"connection", both.connections.front()}}, patience_);
    both.connections.pop_front();
  }
  command({{"do", "open"}, {"path", to_json(path)}}, patience_);
  both.connections.push_back(key);
}

void TwoProcessMeter::make_room(const Path& path, Bytes capacity) {
  Session& both = *session_;
  const std::string key = buffers_key(path);
  if (const auto found = both.buffers.find(key); found != both.buffers.end() && found->second >= capacity) return;
  Bytes total = capacity;
  for (const auto& [unused, bytes] : both.buffers) total += bytes;
  if (total > std::min(most_cached_, free_memory(path) / 2)) {
    command({{"do", "free"}}, patience_);
    both.buffers.clear();
  }
  command({{"do", "buffers"}, {"path", to_json(path)}, {"bytes", capacity}},
          patience_ + static_cast<double>(capacity) / slowest_rate);
  both.buffers[key] = capacity;
}

void TwoProcessMeter::start() {
  attempt("start of a peer process", [] {});
}

void TwoProcessMeter::prepare(const Path& path, const PairRun& run) {
  attempt(doing(run.operation, run.bytes, path), [&] {
    open(path);
    make_room(path, run.capacity());
  });
}

TwoProcessMeter::Both TwoProcessMeter::run(const Path& path, PairRun run, const Company& company) {
  return attempt(doing(run.operation, run.bytes, path), [&] {
    open(path);
    make_room(path, run.capacity());
    Bytes& next = session_->next[buffers_key(path)];
    run.first = next % run.slots();
    if (run.seed == 0) next = (run.first + static_cast<Bytes>(run.before() + run.repetitions)) % run.slots();
    Json body = to_json(run);
    body["do"] = "run";
    body["path"] = to_json(path);
    const double moved = static_cast<double>(run.bytes) * (run.transfers() + 2 * (run.before() + run.in_flight()));
    const Json both = command(body, patience_ + moved * company.pairs / slowest_rate, company.release);
    return Both{pair_result_from_json(both["mine"], answer_name), pair_result_from_json(both["theirs"], answer_name)};
  });
}

std::optional<std::string> TwoProcessMeter::why_unavailable(const Path& path) {
  if (path.processes != 2) return "a path within one process";
  if (auto why = waywiser::why_unavailable(path, {platform_})) return why;
  if (!between_machines()) return waywiser::why_unavailable(reversed(path), {platform_});
  const Json there = attempt("asking for " + label(path), [&] {
    return command({{"do", "why_unavailable"}, {"path", to_json(path)}}, patience_)["theirs"];
  });
  const Json& why = require(there, "why", answer_name);
  return why.is_string() ? std::optional("on the other machine: " + why.get<std::string>()) : std::nullopt;
}

// At the ends that this machine has.
Bytes TwoProcessMeter::free_memory(const Path& path) const {
  const Bytes free = platform_.free_memory(path.source);
  return between_machines() ? free : std::min(free, platform_.free_memory(path.destination));
}

// Each process has a send and a receive buffer.
Bytes TwoProcessMeter::largest(const Path& path) const {
  const Bytes buffers = path.source == path.destination ? 4 : 2;
  return std::min(largest_copy, free_memory(path) / 2 / buffers);
}

Limit TwoProcessMeter::limit(const Path& path, Operation operation) const {
  return limit_ ? limit_(path, operation) : Limit{};
}

std::optional<std::string> TwoProcessMeter::verify(const Path& path, Operation operation, Bytes bytes) {
  check_operation(operation);
  PairRun once{operation, bytes, 1, ++seed_ << 16};
  if (operation != Operation::latency) once.repetitions = static_cast<int>(once.slots());
  const Both both = run(path, once);
  const Bytes wrong = both.mine.mismatches + both.theirs.mismatches;
  if (wrong == 0) return {};
  return std::to_string(wrong) + " of " + std::to_string(bytes * once.slots()) + " bytes arrived wrong";
}

Sample TwoProcessMeter::take(const Path& path, Operation operation, Bytes bytes, int repetitions) {
  check_operation(operation);
  const PairRun timed{operation, bytes, repetitions, 0};
  const Both both = run(path, timed);
  return {both.mine.seconds / timed.transfers(), (both.mine.cpu_seconds + both.theirs.cpu_seconds) / timed.transfers(),
          both.mine.each, both.mine.disturbed.empty() ? both.theirs.disturbed : both.mine.disturbed};
}

Seconds TwoProcessMeter::first_use(const Path& path) {
  return attempt("first use of " + label(path) + ", " + pair_text(path), [&] {
    const Json both = command({{"do", "first_use"}, {"path", to_json(path)}}, patience_);
    return pair_result_from_json(both["mine"], answer_name).seconds;
  });
}

}  // namespace waywiser
