#include "waywiser/comm/bootstrap/joining.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "waywiser/comm/bootstrap/coming.hpp"
#include "waywiser/comm/bootstrap/farewell.hpp"
#include "waywiser/comm/bootstrap/meeting_socket.hpp"
#include "waywiser/comm/bootstrap/root_network.hpp"

namespace waywiser {
namespace {

constexpr Seconds farewell_patience = 0.5;  // of a rank that has found its place
constexpr std::size_t longest_above = 512;

std::string job_below(const std::string& job, int rank) { return job + " below rank " + std::to_string(rank); }

void read_table(const Frame& frame, const Launch& launch, Muster& muster) {
  if (frame.kind != FrameKind::table) throw Error(ErrorKind::invalid_input, "there is no table of ranks");
  WireReader reader(frame.body, "table of ranks");
  muster.ranks = read_table(reader, static_cast<std::size_t>(launch.size));
  Nonce word{};
  std::ranges::copy(reader.raw(word.size()), word.begin());
  reader.end();
  muster.tag_key = launch.root ? tag_key(launch.secret, word) : tag_key(word);
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
    if (doorway.listener.open()) reception_.emplace(launch_, mine_, std::move(doorway.listener), doorway.where);
    try {
      return take(std::move(table), deadline);
    } catch (const Refusal& refusal) {
      pass_on(refusal.reason);
      throw;
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::interrupted) throw;
      // Of another rank that cannot be reached any more rank 0 has heard why.
      say_why(*root_, error.what());
      const std::string reason = last_words(*root_, static_cast<std::size_t>(launch_.size));
      pass_on(reason.empty() ? error.what() : reason);
      if (reason.empty() || reason == error.what()) throw;
      throw Refusal("rank 0", reason);
    }
  }

 private:
  Muster take(Frame table, Deadline deadline) {
    if (table.kind == FrameKind::branch) table = come_above(table, deadline);
    Muster muster;
    muster.branches = mine_.branches;
    read_table(table, launch_, muster);
    if (reception_) reception_->wait_for_those_below(table, deadline);
    if (line_) root_->ask(FrameKind::leave, {}, Deadline::in(farewell_patience));
    if (reception_) muster.lines = reception_->take_lines();
    auto& above = muster.lines[above_.rank] = std::move(line_ ? line_ : root_);
    above->set_limit(largest_answer);
    return muster;
  }
  // Up and down, before any line is closed.
  void pass_on(const std::string& why) {
    std::vector<Connection*> lines = reception_ ? reception_->lines() : std::vector<Connection*>();
    lines.push_back(root_.get());
    if (line_) lines.push_back(line_.get());
    say_farewell(lines, why);
  }
  Frame come_above(const Frame& branch, Deadline deadline) {
    above_ = host_above(branch, launch_, mine_.branches);
    line_ = come_to(above_, mine_, deadline);
    Frame table = answer_of(*line_, above_.name(), deadline);
    has_table_ = true;
    return table;
  }
  bool is_over() {
    if (refusal_) throw Refusal(*refusal_);
    try {
      check_line(*root_, "rank 0");
      if (has_table_) check_line(*line_, above_.name());
    } catch (const Refusal& refusal) {  // who asks may have been about to drop another rank's connection
      refusal_ = refusal;
      throw;
    }
    return interrupted_ && interrupted_();
  }

  const Launch& launch_;
  const Joining& mine_;
  const std::function<bool()>& interrupted_;
  const std::function<bool()> is_over_ = [this] { return is_over(); };
  std::unique_ptr<Connection> root_, line_;  // to the rank above, if that is not rank 0
  bool has_table_ = false;                   // from there
  Host above_{0, launch_};
  std::optional<Reception> reception_;  // if there are ranks below it
  std::optional<Refusal> refusal_;      // that a host has said
};

}  // namespace

Muster join(const Launch& launch, Joining mine, Deadline deadline, const std::function<bool()>& interrupted) {
  Doorway doorway(launch, mine);
  return Seat(launch, mine, come_to({0, launch}, mine, deadline), interrupted).take(doorway, deadline);
}

}  // namespace waywiser
