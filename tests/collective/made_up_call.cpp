#include "tests/collective/made_up_call.hpp"

#include <algorithm>
#include <complex>
#include <cstring>
#include <random>

#include "waywiser/collective/extents.hpp"
#include "waywiser/comm/reduce.hpp"
#include "waywiser/kernels/block/float8.hpp"
#include "waywiser/kernels/block/half.hpp"

namespace waywiser {
namespace {

template <typename T>
void store(std::byte* to, T value) {
  std::memcpy(to, &value, sizeof value);
}

void store(DataType type, std::byte* to, int value) {
  switch (type) {
    case DataType::float64: return store(to, static_cast<double>(value));
    case DataType::float32: return store(to, static_cast<float>(value));
    case DataType::float16: return store(to, to_float16(static_cast<float>(value)));
    case DataType::bfloat16: return store(to, to_bfloat16(static_cast<float>(value)));
    case DataType::int8:
    case DataType::uint8: return store(to, static_cast<std::int8_t>(value));
    case DataType::int16: return store(to, static_cast<std::int16_t>(value));
    case DataType::int32: return store(to, value);
    case DataType::int64: return store(to, static_cast<std::int64_t>(value));
    case DataType::uint16: return store(to, static_cast<std::uint16_t>(value));
    case DataType::uint32: return store(to, static_cast<std::uint32_t>(value));
    case DataType::uint64: return store(to, static_cast<std::uint64_t>(value));
    // The product of two such numbers is another one, or its parts are 0.
    case DataType::complex64: return store(to, std::complex<float>(0, static_cast<float>(value)));
    case DataType::complex128: return store(to, std::complex<double>(0, value));
    case DataType::float8_e4m3fn: return store(to, to_float8_e4m3fn(static_cast<float>(value)));
    case DataType::float8_e5m2: return store(to, to_float8_e5m2(static_cast<float>(value)));
  }
}

// A product has at most seven factors of two.
int made_up_value(const EvaluationTerms& terms, int rank, std::uint64_t draw) {
  const bool float8 = terms.type == DataType::float8_e4m3fn || terms.type == DataType::float8_e5m2;
  if (terms.op != ReduceOp::prod && float8)
    return rank % 3 == 0 ? static_cast<int>(draw % 3) - 1 : 0;  // up to 8: exact
  if (terms.op != ReduceOp::prod) return static_cast<int>(draw % 15) - 7;
  return rank % 3 == 0 && draw % 2 == 0 ? 2 : 1;
}

bool is_scan(Collective operation) { return operation == Collective::scan || operation == Collective::exscan; }
bool rooted_to(Collective operation) { return operation == Collective::reduce || operation == Collective::gather; }
bool rooted_from(Collective operation) {
  return operation == Collective::broadcast || operation == Collective::scatter;
}

std::vector<Neighbor> ring_neighbors(int rank, int ranks, std::uint64_t seed) {
  const auto count = [seed](int from, int tag) { return (seed + static_cast<std::size_t>(3 * from + tag)) % 7; };
  std::vector<Neighbor> both;
  for (const int tag : {0, 1}) {
    const int to =
        wrap(rank + (tag == 0 ? 1 : -1), ranks);  // tag 0 is sent to the rank above and received from the rank below
    both.push_back({to, count(rank, tag), count(to, 1 - tag), tag, 1 - tag});
  }
  return both;
}

}  // namespace

MadeUpCall::MadeUpCall(Collective operation, int ranks, const EvaluationTerms& terms, bool in_place)
    : terms_(terms), in_place_(in_place), calls_(static_cast<std::size_t>(ranks)) {
  for (int rank = 0; rank < ranks; ++rank) {
    CollectiveCall& call = calls_[static_cast<std::size_t>(rank)];
    call.operation = operation;
    call.rank = rank;
    call.ranks = ranks;
    call.root = static_cast<int>(terms.seed % static_cast<std::uint64_t>(ranks));
    call.in_place = in_place;
    call.chunk = 1 + terms.seed % 19;
    for (int other = 0; other < ranks; ++other)
      call.machine_of.push_back(static_cast<int>((static_cast<std::uint64_t>(other) * terms.seed) % 7 / 2));
    if (operation == Collective::neighbor_exchange) call.neighbors = ring_neighbors(rank, ranks, terms.seed);
  }
  draw_sizes(terms.seed, ranks);
  std::mt19937_64 generator(terms.seed);
  for (int rank = 0; rank < ranks; ++rank) {
    Values values(block_count(rank) * bytes_of(terms_.type));
    for (std::size_t at = 0; at < values.size(); at += bytes_of(terms_.type))
      store(terms_.type, values.data() + at, made_up_value(terms_, rank, generator()));
    inputs_.push_back(std::move(values));
  }
}

void MadeUpCall::draw_sizes(std::uint64_t seed, int ranks) {
  std::mt19937_64 generator(seed);
  const auto n = static_cast<std::size_t>(ranks);
  const std::size_t whole[] = {0, 1, n - 1, n, generator() % 300};
  const std::size_t count = whole[seed % 5];
  const bool whole_buffer = calls_[0].operation <= Collective::reduce || calls_[0].operation == Collective::broadcast ||
                            is_scan(calls_[0].operation);
  for (CollectiveCall& call : calls_) call.count = whole_buffer ? count : count % 23;
  if (whole_buffer || seed % 3 == 0 || calls_[0].operation >= Collective::barrier) return;
  std::vector<std::vector<std::size_t>> matrix(n, std::vector<std::size_t>(n));
  for (auto& row : matrix)
    for (std::size_t& each : row) each = generator() % 4 == 0 ? 0 : generator() % 20;
  for (std::size_t rank = 0; rank < n; ++rank) {
    if (calls_[0].operation != Collective::all_to_all) {
      calls_[rank].counts = matrix[0];
      continue;
    }
    calls_[rank].counts = matrix[rank];
    for (std::size_t other = 0; other < n; ++other) calls_[rank].receive_counts.push_back(matrix[other][rank]);
  }
}

// Elements of the input.
std::size_t MadeUpCall::block_count(int rank) const {
  const CollectiveCall& call = of(rank);
  const bool root = call.rank == call.root;
  std::size_t sent = 0;
  for (const Neighbor& neighbor : call.neighbors) sent += neighbor.send;
  switch (call.operation) {
    case Collective::scan:
    case Collective::exscan:
    case Collective::all_reduce:
    case Collective::reduce: return call.count;
    case Collective::broadcast: return root ? call.count : 0;
    case Collective::scatter: return root ? Extents(call).total() : 0;
    case Collective::all_to_all:
    case Collective::reduce_scatter: return Extents(call).total();
    case Collective::all_gather:
    case Collective::gather: return Extents(call).count(rank);
    case Collective::barrier: return 0;
    case Collective::neighbor_exchange: return sent;
  }
  return 0;
}

PlainArrays MadeUpCall::arrays(const Schedule& schedule) const {
  PlainArrays arrays;
  const CollectiveCall& call = of(schedule.rank);
  const bool shared =
      in_place_ && (call.rank == call.root || (!rooted_to(call.operation) && !rooted_from(call.operation)));
  const std::size_t own = Extents(call).block(Area::input, call.rank).offset;
  if (!shared)
    arrays.output_at = schedule.input_count;
  else if (call.operation == Collective::all_gather || call.operation == Collective::gather)
    arrays.input_at = own;
  else if (call.operation == Collective::reduce_scatter || call.operation == Collective::scatter)
    arrays.output_at = own;
  arrays.scratch_at = std::max(arrays.input_at + schedule.input_count, arrays.output_at + schedule.output_count);
  arrays.bytes.resize((arrays.scratch_at + schedule.scratch_count) * bytes_of(terms_.type) + 1, std::byte{0x5b});
  const Values& input = inputs_[static_cast<std::size_t>(schedule.rank)];
  std::ranges::copy(input, arrays.bytes.begin() + static_cast<std::ptrdiff_t>(arrays.input_at * bytes_of(terms_.type)));
  return arrays;
}

MadeUpCall::Values MadeUpCall::slice(const Values& values, std::size_t first, std::size_t count) const {
  const std::size_t size = bytes_of(terms_.type);
  const auto begin = values.begin() + static_cast<std::ptrdiff_t>(first * size);
  return {begin, begin + static_cast<std::ptrdiff_t>(count * size)};
}

// Of the first ranks.
MadeUpCall::Values MadeUpCall::scanned(std::size_t ranks) const {
  if (ranks == 0) return {};
  Values sum = inputs_[0];
  for (std::size_t rank = 1; rank < ranks; ++rank)
    reduce(terms_.type, terms_.op, sum.data(), inputs_[rank].data(), sum.size() / bytes_of(terms_.type));
  return sum;
}

MadeUpCall::Values MadeUpCall::reduced(bool divided) const {
  Values sum = scanned(inputs_.size());
  if (divided) average(terms_.type, sum.data(), sum.size() / bytes_of(terms_.type), of(0).ranks);
  return sum;
}

// The rank's blocks of all inputs, one after the other.
MadeUpCall::Values MadeUpCall::blocks_for(int rank) const {
  Values all;
  for (const CollectiveCall& call : calls_) {
    const Block block = Extents(call).block(Area::input, rank);
    const Values part = slice(inputs_[static_cast<std::size_t>(call.rank)], block.offset, block.count);
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

MadeUpCall::Values MadeUpCall::neighbor_messages(int rank) const {
  const int ranks = of(rank).ranks, above = wrap(rank + 1, ranks), below = wrap(rank - 1, ranks);
  const std::size_t up = of(above).neighbors[0].send, down = of(above).neighbors[1].send;
  Values all = slice(inputs_[static_cast<std::size_t>(above)], up, down);
  const Values second = slice(inputs_[static_cast<std::size_t>(below)], 0, of(below).neighbors[0].send);
  all.insert(all.end(), second.begin(), second.end());
  return all;
}

MadeUpCall::Values MadeUpCall::expected(int rank, bool divided) const {
  const CollectiveCall& call = of(rank);
  const Block block = Extents(call).block(Area::input, rank);
  const Values& at_root = inputs_[static_cast<std::size_t>(call.root)];
  Values all;
  switch (call.operation) {
    case Collective::barrier: return {};
    case Collective::reduce: return call.rank == call.root ? reduced(divided) : Values();
    case Collective::all_reduce: return reduced(divided);
    case Collective::scan: return scanned(static_cast<std::size_t>(rank) + 1);
    case Collective::exscan: return scanned(static_cast<std::size_t>(rank));
    case Collective::broadcast: return at_root;
    case Collective::scatter: return slice(at_root, block.offset, block.count);
    case Collective::reduce_scatter: return slice(reduced(divided), block.offset, block.count);
    case Collective::all_to_all: return blocks_for(rank);
    case Collective::neighbor_exchange: return neighbor_messages(rank);
    case Collective::gather:
      if (call.rank != call.root) return {};
      [[fallthrough]];
    case Collective::all_gather:
      for (const Values& input : inputs_) all.insert(all.end(), input.begin(), input.end());
      return all;
  }
  return all;
}

std::string MadeUpCall::wrong(const std::vector<Schedule>& schedules, const std::vector<PlainArrays>& arrays,
                              bool divided) const {
  for (const Schedule& schedule : schedules) {
    const auto rank = static_cast<std::size_t>(schedule.rank);
    const std::string name = "rank " + std::to_string(schedule.rank) + ": ";
    if (slice(arrays[rank].bytes, arrays[rank].output_at, schedule.output_count) != expected(schedule.rank, divided))
      return name + "wrong output";
    if (!in_place_ && slice(arrays[rank].bytes, arrays[rank].input_at, schedule.input_count) != inputs_[rank])
      return name + "its input has changed";
  }
  return {};
}

}  // namespace waywiser
