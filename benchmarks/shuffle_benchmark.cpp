// Shuffles of tables between four processes of this machine, in turns with the same bytes as bare messages while all of
// them are busy: the rate of a rank, and what part of the messages' rate a shuffle reaches. Rows by the hash of their
// keys, or in runs whose parts are known.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
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

constexpr int ranks = 4, rounds = 5;
constexpr Bytes message = usual_piece;
constexpr std::int64_t rows_of_run = 1 << 14;  // for one part, as it is given: 256 KiB of numbers

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

double slowest(Group& group, Seconds time) {
  group.all_reduce(std::span<const double>(&time, 1), std::span(&time, 1), ReduceOp::max);
  return time;
}

// The time for `bytes` to each other rank in messages as long as a shuffle's pieces, two to each under way; out of two
// buffers and into two for each rank, which stay in caches, or out of memory as large as a table, into new memory.
Seconds messages(Group& group, Bytes bytes, std::span<const std::byte> table) {
  const bool is_far = !table.empty();
  const std::vector<std::byte> buffers(is_far ? 0 : 2 * message);
  const std::span<const std::byte> out = is_far ? table : buffers;
  const Bytes of_rank = is_far ? (bytes + message - 1) / message * message : 2 * message;
  std::vector<Future> before;
  group.barrier();
  const Seconds start = now_seconds();
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
  return slowest(group, now_seconds() - start);
}

// `most`: the bytes that the busiest rank has sent to others.
Seconds shuffle_of(Group& group, RandomTable& table, bool in_runs, double& most) {
  const ArrowSchema schema = table.schema();
  const int by_key[] = {0};
  group.barrier();
  const Seconds start = now_seconds();
  Shuffle shuffle(group, schema);
  if (!in_runs) shuffle.insert(table.batch(0, table.rows()), by_key);
  for (std::int64_t first = 0, run = 0; in_runs && first < table.rows(); first += rows_of_run, ++run)
    shuffle.insert(table.batch(first, std::min(rows_of_run, table.rows() - first)), static_cast<int>(run % ranks));
  shuffle.finish();
  std::vector<Batch> kept;
  while (const auto part = shuffle.next()) std::ranges::move(shuffle.extract(*part), std::back_inserter(kept));
  const Seconds time = slowest(group, now_seconds() - start);
  most = 0;
  const ShuffleCounts counts = shuffle.counts();
  for (int rank = 0; rank < ranks; ++rank)
    if (rank != group.rank()) most += static_cast<double>(counts.peers[static_cast<std::size_t>(rank)].bytes_out);
  most = slowest(group, most);
  return time;
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

void measure(Group& group, const char* name, std::int64_t rows, bool with_texts, bool in_runs) {
  RandomTable table(rows, with_texts, group.rank());
  double bytes = 0;
  shuffle_of(group, table, in_runs, bytes);
  std::vector<double> bare, far, shuffled, part, part_of_far;
  for (int round = 0; round < rounds; ++round) {
    const Bytes of_peer = static_cast<Bytes>(bytes) / (ranks - 1);
    bare.push_back(bytes / messages(group, of_peer, {}));
    far.push_back(bytes / messages(group, of_peer, table.bytes()));
    shuffled.push_back(bytes / shuffle_of(group, table, in_runs, bytes));
    part.push_back(100 * shuffled.back() / bare.back());
    part_of_far.push_back(100 * shuffled.back() / far.back());
  }
  if (group.rank() == 0)
    std::printf("%-13s  %8s out of a rank  messages %10s, between tables %10s  shuffle %10s  %3.0f %%, %3.0f %%\n",
                name, format_bytes(static_cast<Bytes>(bytes)).c_str(), format_rate(median(bare)).c_str(),
                format_rate(median(far)).c_str(), format_rate(median(shuffled)).c_str(), median(part),
                median(part_of_far));
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
