// Shuffles of tables between four processes of this machine, in turns with the same bytes as bare messages while all of
// them are busy: the rate of a rank, and what part of the messages' rate a shuffle reaches. Rows by the hash of their
// keys, or in runs whose parts are known.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "benchmarks/forked_ranks.hpp"
#include "waywiser/comm/bootstrap/join_options.hpp"
#include "waywiser/group/group.hpp"
#include "waywiser/table/shuffle.hpp"

using namespace waywiser;

namespace {

constexpr int ranks = 4, rounds = 7;
constexpr Bytes message = usual_piece;
constexpr std::int64_t rows_of_run = 1 << 14;  // for one part, as it is given: 256 KiB of numbers

struct Cost {
  Seconds time = 0, cpu = 0;
};

// Random keys, numbers, and texts of 0 to 31 bytes if they are wanted; the arrays own nothing.
class RandomTable {
 public:
  RandomTable(std::int64_t rows, bool with_texts, int rank)
      : keys_(static_cast<std::size_t>(rows)), numbers_(keys_.size()), offsets_(with_texts ? keys_.size() + 1 : 0) {
    std::uint64_t state = static_cast<std::uint64_t>(rank) + 1;
    for (std::size_t row = 0; row < keys_.size(); ++row) {
      state = state * 6364136223846793005ull + 1442695040888963407ull;
      keys_[row] = static_cast<std::int64_t>(state);
      numbers_[row] = static_cast<double>(row);
      if (with_texts) offsets_[row + 1] = offsets_[row] + static_cast<std::int32_t>(state >> 59);
    }
    if (with_texts) texts_.assign(static_cast<std::size_t>(offsets_.back()), 'x');
    add("key", "l", {nullptr, keys_.data()});
    add("number", "g", {nullptr, numbers_.data()});
    if (with_texts) add("text", "u", {nullptr, offsets_.data(), texts_.data()});
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      arrays_.push_back(&columns_[i].array), schemas_.push_back(&columns_[i].schema);
      columns_[i].array.buffers = columns_[i].buffers.data();
    }
  }

  ArrowSchema schema() {
    ArrowSchema all{};
    all.format = "+s", all.release = [](ArrowSchema*) {};
    all.n_children = static_cast<std::int64_t>(schemas_.size()), all.children = schemas_.data();
    return all;
  }
  // One column.
  std::span<const std::byte> bytes() const { return std::as_bytes(std::span(keys_)); }
  std::int64_t rows() const { return static_cast<std::int64_t>(keys_.size()); }
  Batch batch(std::int64_t first, std::int64_t count) {
    ArrowArray all{};
    all.length = count, all.offset = first, all.release = [](ArrowArray*) {};
    all.n_buffers = 1, all.buffers = no_buffers_;
    all.n_children = static_cast<std::int64_t>(arrays_.size()), all.children = arrays_.data();
    return Batch(all);
  }

 private:
  struct Column {
    std::vector<const void*> buffers;
    ArrowArray array{};
    ArrowSchema schema{};
  };
  void add(const char* name, const char* format, std::vector<const void*> buffers) {
    Column& column = columns_.emplace_back();
    column.buffers = std::move(buffers);
    column.array.length = static_cast<std::int64_t>(keys_.size());
    column.array.n_buffers = static_cast<std::int64_t>(column.buffers.size());
    column.array.release = [](ArrowArray*) {};
    column.schema.name = name, column.schema.format = format;
    column.schema.release = [](ArrowSchema*) {};
  }

  std::vector<std::int64_t> keys_;
  std::vector<double> numbers_;
  std::vector<std::int32_t> offsets_;
  std::vector<char> texts_;
  std::vector<Column> columns_;
  std::vector<ArrowArray*> arrays_;
  std::vector<ArrowSchema*> schemas_;
  const void* no_buffers_[1] = {nullptr};
};

double of_all(Group& group, double value, ReduceOp op) {
  group.all_reduce(std::span<const double>(&value, 1), std::span(&value, 1), op);
  return value;
}

Seconds cpu_seconds() {
  timespec used;
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return static_cast<Seconds>(used.tv_sec) + 1e-9 * static_cast<Seconds>(used.tv_nsec);
}

// From when it is made on, after a barrier.
class Stopwatch {
 public:
  explicit Stopwatch(Group& group) : group_(group), start_((group.barrier(), now_seconds())), cpu_(cpu_seconds()) {}
  // The time of the slowest rank, and the CPU time of all.
  Cost read() const {
    const Seconds time = now_seconds() - start_, cpu = cpu_seconds() - cpu_;
    return {of_all(group_, time, ReduceOp::max), of_all(group_, cpu, ReduceOp::sum)};
  }

 private:
  Group& group_;
  Seconds start_, cpu_;
};

// The time for `bytes` to each other rank in messages as long as a shuffle's pieces, two to each under way; out of two
// buffers and into two for each rank, which stay in caches, or out of memory as large as a table, into new memory.
Cost messages(Group& group, Bytes bytes, std::span<const std::byte> table) {
  const bool is_far = !table.empty();
  const std::vector<std::byte> buffers(is_far ? 0 : 2 * message);
  const std::span<const std::byte> out = is_far ? table : buffers;
  const Bytes of_rank = is_far ? (bytes + message - 1) / message * message : 2 * message;
  std::vector<Future> before;
  const Stopwatch watch(group);
  const auto in = std::make_unique_for_overwrite<std::byte[]>(ranks * of_rank);
  for (Bytes sent = 0; sent < bytes; sent += message) {
    const Bytes length = std::min(message, bytes - sent);
    const Bytes place = is_far ? sent : sent / message % 2 * message, taken = place % (out.size() - length + 1);
    std::vector<Future> now;
    for (int distance = 1; distance < ranks; ++distance) {
      const int to = (group.rank() + distance) % ranks, from = (group.rank() + ranks - distance) % ranks;
      const std::span into(in.get() + static_cast<Bytes>(from) * of_rank + place, length);
      now.push_back(group.recv(into, from, 0, Mode::begin));
      now.push_back(group.send(out.subspan(taken, length), to, 0, Mode::begin));
    }
    for (Future& each : before) each.wait();
    before = std::move(now);
  }
  for (Future& each : before) each.wait();
  return watch.read();
}

// `most`: the bytes that the busiest rank has sent to others.
Cost shuffle_of(Group& group, RandomTable& table, bool in_runs, double& most) {
  const ArrowSchema schema = table.schema();
  const int by_key[] = {0};
  const Stopwatch watch(group);
  Shuffle shuffle(group, schema);
  if (!in_runs) shuffle.insert(table.batch(0, table.rows()), by_key);
  for (std::int64_t first = 0, run = 0; in_runs && first < table.rows(); first += rows_of_run, ++run)
    shuffle.insert(table.batch(first, std::min(rows_of_run, table.rows() - first)), static_cast<int>(run % ranks));
  shuffle.finish();
  std::vector<Batch> kept;
  while (const auto part = shuffle.next()) std::ranges::move(shuffle.extract(*part), std::back_inserter(kept));
  const Cost cost = watch.read();
  most = 0;
  const ShuffleCounts counts = shuffle.counts();
  for (int rank = 0; rank < ranks; ++rank)
    if (rank != group.rank()) most += static_cast<double>(counts.peers[static_cast<std::size_t>(rank)].bytes_out);
  most = of_all(group, most, ReduceOp::max);
  return cost;
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

// One way to move the bytes, over the rounds.
struct Way {
  std::vector<double> rates, cpu;  // cpu: seconds of all ranks for 1 GB out of the busiest one
  void add(const Cost& cost, double bytes) {
    rates.push_back(bytes / cost.time), cpu.push_back(1e9 * cost.cpu / bytes);
  }
  std::string words() const {
    std::array<char, 64> text;
    std::snprintf(text.data(), text.size(), "%10s, CPU %4.1f s/GB", format_rate(median(rates)).c_str(), median(cpu));
    return text.data();
  }
  double share_of(const Way& bound) const {
    std::vector<double> shares;
    for (std::size_t i = 0; i < rates.size(); ++i) shares.push_back(100 * rates[i] / bound.rates[i]);
    return median(shares);
  }
};

void measure(Group& group, const char* name, std::int64_t rows, bool with_texts, bool in_runs) {
  RandomTable table(rows, with_texts, group.rank());
  double bytes = 0;
  shuffle_of(group, table, in_runs, bytes);
  Way bare, far, shuffled;
  for (int round = 0; round < rounds; ++round) {
    const Bytes of_peer = static_cast<Bytes>(bytes) / (ranks - 1);
    bare.add(messages(group, of_peer, {}), bytes);
    far.add(messages(group, of_peer, table.bytes()), bytes);
    shuffled.add(shuffle_of(group, table, in_runs, bytes), bytes);
  }
  if (group.rank() == 0)
    std::printf("%-13s  %8s out of a rank  messages %s; between tables %s; shuffle %s; %3.0f %%, %3.0f %%\n", name,
                format_bytes(static_cast<Bytes>(bytes)).c_str(), bare.words().c_str(), far.words().c_str(),
                shuffled.words().c_str(), shuffled.share_of(bare), shuffled.share_of(far));
}

int run(int rank) {
  JoinOptions options;
  options.launch = Launch{"benchmark", rank, ranks, "shuffle-" + std::to_string(::getpgrp()), {}, ""};
  Group group = Group::join(options);
  const char* megabytes = std::getenv("SHUFFLE_MEGABYTES");  // of a rank's table
  const std::int64_t bytes = (megabytes == nullptr ? 250 : std::atoll(megabytes)) * 1'000'000;
  const char* only = std::getenv("SHUFFLE_ONLY");  // a number: 0 to 2
  const int wanted = only == nullptr ? -1 : std::atoi(only);
  if (wanted < 0 || wanted == 0) measure(group, "numbers, runs", bytes / 16, false, true);
  if (wanted < 0 || wanted == 1) measure(group, "numbers", bytes / 16, false, false);
  if (wanted < 0 || wanted == 2) measure(group, "with texts", bytes / 36, true, false);
  return 0;
}

}  // namespace

int main() { return forked_ranks("shuffle_benchmark", ranks, run); }
