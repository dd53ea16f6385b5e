// What a rank pays to be one of many: how long the ranks of a job take to meet, CPU time, connections and memory of a
// rank, and how long it takes until all know that one has died. The ranks are processes of this machine that are forked
// together. A light rank meets the others, tells them as many bytes as a rank of one machine does, and keeps its
// life-line; with --whole it joins as a program does, with UCX.
// With --machines the ranks play machines of 64 ranks each, by names: no rank tries the memory of ranks elsewhere.
//   meeting_benchmark [--whole] [--at-address] [--machines] [RANKS...]
#include <poll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include "waywiser/base/error.hpp"
#include "waywiser/base/units.hpp"
#include "waywiser/comm/bootstrap/join_options.hpp"
#include "waywiser/comm/bootstrap/sharing.hpp"
#include "waywiser/comm/session/lifeline.hpp"
#include "waywiser/comm/session/neighbours.hpp"
#include "waywiser/comm/shared_memory/reach_trial.hpp"
#include "waywiser/group/group.hpp"

using namespace waywiser;

namespace {

constexpr int usual_sizes[] = {16, 64, 256};
constexpr int most_ranks = 4096, ranks_of_machine = 64;
constexpr std::size_t bytes_of_offers = 320;  // what write_offers() makes within a machine
constexpr Seconds patience = 300;
constexpr Seconds nap = 1e-3, nap_of_a_rank = 1e-4;  // many ranks that look often would be what is measured

struct Settings {
  bool whole = false, at_address = false, machines = false;
};

// What one rank has found, in memory that all processes share.
struct Row {
  Seconds met = 0, cpu = 0, heard = 0;
  std::size_t connections = 0, kept = 0;  // bytes that no other process has
};

struct Board {
  std::atomic<int> ready, formed, measured, ended;
  std::atomic<bool> go, may_end;
  std::atomic<std::uint32_t> port;
  std::atomic<Seconds> killed_at;
  Row rows[most_ranks];
};

Seconds cpu_time() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto of = [](const timeval& time) {
    return static_cast<Seconds>(time.tv_sec) + 1e-6 * static_cast<Seconds>(time.tv_usec);
  };
  return of(usage.ru_utime) + of(usage.ru_stime);
}

std::size_t open_sockets() {
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    count += std::filesystem::read_symlink(entry, gone).string().rfind("socket:", 0) == 0 ? 1u : 0u;
  }
  return count;
}

// Private bytes, those of shared memory files of this rank included: what each more rank costs.
std::size_t kept_bytes() {
  std::ifstream rollup("/proc/self/smaps_rollup");
  std::size_t kib = 0, sum = 0;
  for (std::string word; rollup >> word;)
    if ((word == "Private_Clean:" || word == "Private_Dirty:") && rollup >> kib) sum += kib << 10;
  return sum;
}

void sleep_for(Seconds time) { std::this_thread::sleep_for(std::chrono::duration<Seconds>(time)); }

template <typename Done>
void await(int ranks, Done done) {
  for (const Deadline deadline = Deadline::in(patience); !done(); sleep_for(std::max(nap, ranks * nap_of_a_rank)))
    if (deadline.passed()) throw Error(ErrorKind::timeout, "the ranks do not go on");
}

class LightRank {
 public:
  LightRank(const Launch& launch, const Settings& settings, const std::function<void(const Endpoint&)>& announce)
      : size_(launch.size) {
    const ReachTrial trial;
    Introduction mine = introduce(launch);
    mine.reach = trial.offer();
    if (settings.machines) {
      mine.system = mine.system + (" machine " + std::to_string(launch.rank / ranks_of_machine));
      mine.machine_id = mine.system;
    }
    const Deadline deadline = Deadline::in(patience);
    Muster muster = meet(launch, mine, deadline, announce);
    find_neighbours(muster, launch, deadline, {});
    std::vector<std::byte> offers(bytes_of_offers);
    std::memcpy(offers.data(), &launch.rank, sizeof launch.rank);  // as those of no other rank
    share_with_all(muster, launch.rank, offers, deadline);
    line_ = std::make_unique<Lifeline>(launch.rank, std::move(muster), Lifeline::Callbacks{[] { return ""; }});
  }
  bool knows_of_a_failure() const { return line_->failure() != nullptr; }
  void close() {
    line_->leave();
    await(size_, [this] { return line_->finished() || knows_of_a_failure(); });
    line_->halt();
    line_->close();
  }

 private:
  int size_;
  std::unique_ptr<Lifeline> line_;
};

class WholeRank {
 public:
  WholeRank(const Launch& launch, const Settings&, const std::function<void(const Endpoint&)>& announce)
      : group_(Group::join(options_of(launch, announce))) {}
  bool knows_of_a_failure() const { return !group_.failure().empty(); }
  void close() { group_.close(); }

 private:
  static JoinOptions options_of(const Launch& launch, const std::function<void(const Endpoint&)>& announce) {
    JoinOptions options;
    options.launch = launch;
    options.announce = announce;
    options.timeout = patience;
    return options;
  }
  Group group_;
};

// If `dies`: the rank in the middle is killed, and the others wait until they know.
template <typename Rank>
void be_a_rank(Launch launch, Board& board, const Settings& settings, bool dies) {
  Row& row = board.rows[launch.rank];
  ++board.ready;
  await(launch.size, [&] { return board.go.load(); });
  const Seconds began = now_seconds(), cpu_before = cpu_time();
  const auto announce = [&](const Endpoint& here) { board.port = here.port; };
  if (settings.at_address) {
    launch.root = Endpoint{"127.0.0.1", 0};
    launch.secret = "a secret of the benchmark";
    if (launch.rank != 0) await(launch.size, [&] { return board.port != 0; });
    if (launch.rank != 0) launch.root->port = static_cast<std::uint16_t>(board.port.load());
  }
  Rank rank(launch, settings, announce);
  row.met = now_seconds() - began;
  row.cpu = cpu_time() - cpu_before;
  row.connections = open_sockets();
  row.kept = kept_bytes();
  ++board.formed;
  await(launch.size, [&] { return board.formed == launch.size; });
  if (dies && launch.rank == launch.size / 2) {
    board.killed_at = now_seconds();
    ::kill(::getpid(), SIGKILL);
  }
  if (dies) {
    await(launch.size, [&] { return rank.knows_of_a_failure(); });
    row.heard = now_seconds() - board.killed_at;
    ++board.measured;
    await(launch.size, [&] { return board.measured == launch.size - 1; });  // nobody hears of the end of another one
    ::_exit(0);
  }
  const Seconds cpu_between = cpu_time();  // what the wait for the others costs is of this program
  rank.close();
  row.cpu += cpu_time() - cpu_between;
}

int in_child(const Settings& settings, const Launch& launch, Board& board, bool dies) {
  try {
    settings.whole ? be_a_rank<WholeRank>(launch, board, settings, dies)
                   : be_a_rank<LightRank>(launch, board, settings, dies);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "meeting_benchmark: rank %d: %s\n", launch.rank, error.what());
    return 1;
  }
}

// False: a rank has failed that should not.
bool run_job(const Settings& settings, int size, Board& board, bool dies) {
  board.~Board();
  ::new (static_cast<void*>(&board)) Board{};
  std::vector<pid_t> children;
  Launch launch{"benchmark", 0, size, "meeting-" + std::to_string(::getpid()) + (dies ? "-dies" : ""), {}, ""};
  for (; launch.rank < size; ++launch.rank) {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(in_child(settings, launch, board, dies));
    if (child < 0) break;
    children.push_back(child);
  }
  const bool all = children.size() == static_cast<std::size_t>(size);
  if (!all) std::perror("meeting_benchmark");
  const Deadline deadline = Deadline::in(patience);
  while (all && board.ready < size && !deadline.passed()) sleep_for(nap);
  board.go = all;
  if (!all)
    for (const pid_t child : children) ::kill(child, SIGKILL);
  bool good = all;
  for (std::size_t rank = 0; rank < children.size(); ++rank) {
    int status = 0;
    const bool ended =
        ::waitpid(children[rank], &status, 0) == children[rank] && WIFEXITED(status) && WEXITSTATUS(status) == 0;
    good = good && (ended || (dies && rank == static_cast<std::size_t>(size / 2)));
  }
  return good;
}

template <typename Value>
double mean_of(const Board& board, int size, Value Row::* value) {
  double sum = 0;
  for (int rank = 0; rank < size; ++rank) sum += static_cast<double>(board.rows[rank].*value);
  return sum / size;
}

template <typename Value>
Value most_of(const Board& board, int size, Value Row::* value) {
  Value most{};
  for (int rank = 0; rank < size; ++rank) most = std::max(most, board.rows[rank].*value);
  return most;
}

bool measure(const Settings& settings, int size, Board& board) {
  if (!run_job(settings, size, board, false)) return false;
  const Seconds met = most_of(board, size, &Row::met), cpu = mean_of(board, size, &Row::cpu),
                most_cpu = most_of(board, size, &Row::cpu);
  const double connections = mean_of(board, size, &Row::connections), kept = mean_of(board, size, &Row::kept);
  const std::size_t most_connections = most_of(board, size, &Row::connections);
  if (!run_job(settings, size, board, true)) return false;
  const Seconds heard = most_of(board, size, &Row::heard);
  std::printf("%5d  %9s  %10.2f  %10.2f  %11.1f  %11zu  %9.0f  %9s\n", size, format_seconds(met).c_str(), cpu * 1e3,
              most_cpu * 1e3, connections, most_connections, kept / 1024, format_seconds(heard).c_str());
  std::fflush(stdout);
  return true;
}

int complain(const char* word) {
  std::fprintf(stderr,
               "meeting_benchmark: %s: not --whole, --at-address, --machines, or a number of ranks from 2 to %d\n",
               word, most_ranks);
  return 2;
}

}  // namespace

int main(int count, char** words) {
  Settings settings;
  std::vector<int> sizes;
  for (int i = 1; i < count; ++i) {
    const std::string_view word = words[i];
    int size = 0;
    const auto [end, problem] = std::from_chars(word.data(), word.data() + word.size(), size);
    if (word == "--whole")
      settings.whole = true;
    else if (word == "--at-address")
      settings.at_address = true;
    else if (word == "--machines")
      settings.machines = true;
    else if (problem == std::errc() && end == word.data() + word.size() && size >= 2 && size <= most_ranks)
      sizes.push_back(size);
    else
      return complain(words[i]);
  }
  if (settings.whole && settings.machines) return complain("--machines with --whole");
  if (sizes.empty()) sizes.assign(std::begin(usual_sizes), std::end(usual_sizes));
  void* shared = ::mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) return std::perror("meeting_benchmark"), 1;
  Board& board = *::new (shared) Board{};
  std::printf(
      "ranks        met  ms of CPU,      of the  connections,       of the        KiB      death\n"
      "                        a rank        most         a rank         most     a rank   known to\n"
      "                                                                                        all\n");
  for (const int size : sizes)
    if (!measure(settings, size, board)) return 1;
  return 0;
}
