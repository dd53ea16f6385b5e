// Shuffles of tables between four processes of this machine, in turns with the same bytes as bare messages while all of
// them are busy: the rate of a rank, and what part of the messages' rate a shuffle reaches. Rows by the hash of their
// keys, or in runs whose parts are known.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
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

// The time for `bytes` to each other rank in messages as long as a shuffle's pieces, two to each under way.
Seconds messages(Group& group, Bytes bytes) {
  std::vector<std::byte> out(2 * message), in(2 * ranks * message);
  std::vector<Future> before;
  group.barrier();
  const Seconds start = now_seconds();
  for (Bytes sent = 0; sent < bytes; sent += message) {
    const Bytes length = std::min(message, bytes - sent), half = sent / message % 2;
    std::vector<Future> now;
    for (int distance = 1; distance < ranks; ++distance) {
      const int to = (group.rank() + distance) % ranks, from = (group.rank() + ranks - distance) % ranks;
      const auto place = static_cast<Bytes>(from) * 2 + half;
      now.push_back(group.recv(std::span(in).subspan(place * message, length), from, 0, Mode::begin));
      now.push_back(group.send(std::span<const std::byte>(out).subspan(half * message, length), to, 0, Mode::begin));
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
  std::vector<double> bare, shuffled, part;
  for (int round = 0; round < rounds; ++round) {
    bare.push_back(bytes / messages(group, static_cast<Bytes>(bytes) / (ranks - 1)));
    shuffled.push_back(bytes / shuffle_of(group, table, in_runs, bytes));
    part.push_back(100 * shuffled.back() / bare.back());
  }
  if (group.rank() == 0)
    std::printf("%-13s  %8s out of a rank  messages %10s  shuffle %10s  %3.0f %%\n", name,
                format_bytes(static_cast<Bytes>(bytes)).c_str(), format_rate(median(bare)).c_str(),
                format_rate(median(shuffled)).c_str(), median(part));
}

int run(int rank) {
  JoinOptions options;
  options.launch = Launch{"benchmark", rank, ranks, "shuffle-" + std::to_string(::getpgrp()), {}, ""};
  Group group = Group::join(options);
  const char* megabytes = std::getenv("SHUFFLE_MEGABYTES");  // of a rank's table
  const std::int64_t bytes = (megabytes == nullptr ? 250 : std::atoll(megabytes)) * 1'000'000;
  measure(group, "numbers, runs", bytes / 16, false, true);
  measure(group, "numbers", bytes / 16, false, false);
  measure(group, "with texts", bytes / 36, true, false);
  return 0;
}

}  // namespace

int main() { return forked_ranks("shuffle_benchmark", ranks, run); }
