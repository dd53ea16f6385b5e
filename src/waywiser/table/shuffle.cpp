#include "waywiser/table/shuffle.hpp"

#include <algorithm>
#include <utility>

#include "waywiser/base/error.hpp"
#include "waywiser/device/platform.hpp"
#include "waywiser/device/stream.hpp"
#include "waywiser/group/group.hpp"
#include "waywiser/table/gpu_pack.hpp"
#include "waywiser/table/mix.hpp"
#include "waywiser/table/row_hash.hpp"
#include "waywiser/table/schema_agreement.hpp"
#include "waywiser/table/unpack.hpp"

namespace waywiser {
namespace {

constexpr int most_parts = 1 << 20;
constexpr Bytes least_piece = 1 << 10, largest_piece = Bytes{1} << 30;
constexpr std::int64_t most_rows_at_once = 1 << 22;

[[noreturn]] void refuse_shuffle(const std::string& why) {
  throw Error(ErrorKind::invalid_input, "a shuffle of tables: " + why);
}

void check_options(const ShuffleOptions& options) {
  if (options.parts < 1 || options.parts > most_parts)
    refuse_shuffle(std::to_string(options.parts) + " parts are not in 1 to " + std::to_string(most_parts));
  if (options.piece < least_piece || options.piece > largest_piece)
    refuse_shuffle("pieces of " + std::to_string(options.piece) + " bytes are not in 1 KiB to 1 GiB");
  if (options.budget / 4 < options.piece)
    refuse_shuffle("a budget of " + std::to_string(options.budget) + " bytes is less than four pieces of " +
                   std::to_string(options.piece));
}

ShuffleOptions with_parts(ShuffleOptions options, int ranks) {
  if (options.parts == 0) options.parts = ranks;
  return options;
}

TableSchema agreed(Group& group, const std::function<TableSchema()>& schema, const ShuffleOptions& options) {
  const auto parse = [&] {
    check_options(options);
    if (options.place.is_gpu() && options.place.index >= group.platform()->gpu_count())
      refuse_shuffle("there is no " + text(options.place));
    return schema();
  };
  const std::string where = options.place.is_gpu() ? " on GPUs" : "";
  return agreed_schema(group, parse, options.purpose + " into " + std::to_string(options.parts) + " parts" + where);
}

// Its messages meet no others.
Group own_group(Group& group) { return std::move(*group.split(0, group.rank())); }

}  // namespace

Shuffle::Shuffle(Group& group, const ArrowSchema& schema, ShuffleOptions options)
    : Shuffle(group, [&] { return parse_schema(schema); }, std::move(options)) {}

Shuffle::Shuffle(Group& group, const std::function<TableSchema()>& schema, ShuffleOptions options)
    : group_(group),
      options_(with_parts(std::move(options), group.size())),
      schema_(agreed(group, schema, options_)),
      given_(static_cast<std::size_t>(options_.parts)),
      ended_(static_cast<std::size_t>(group.size())),
      by_part_(options_.parts),
      stream_(options_.place.is_gpu() ? group.platform()->open_stream(options_.place) : nullptr),
      exchange_(own_group(group), options_.place, schema_.nodes(), options_.budget,
                [this](ArrivedPiece&& piece) { arrive(std::move(piece)); }) {
  const auto ranks = static_cast<std::size_t>(group.size());
  counts_.peers.resize(ranks);
  for (int part = group.rank(); part < options_.parts; part += group.size())
    taken_.push_back({std::vector<Sums>(ranks), std::vector<std::vector<Batch>>(ranks)});
}

Shuffle::~Shuffle() = default;

int Shuffle::owner_of(int part) const {
  check_part(part);
  return part % group_.size();
}

void Shuffle::insert(const Batch& batch, int part) {
  require_open(part);
  check_batch(schema_, batch.array());
  if (stream_) return add_rows_of_gpu(batch, part);
  add_rows(batch, part, RowSet(0, batch.rows()));
}

void Shuffle::insert(const Batch& batch, std::span<const int> keys) {
  if (keys.empty()) refuse_shuffle("no key is given");
  if (stream_) throw Error(ErrorKind::unavailable, "a shuffle of tables: rows on GPUs are not hashed: name their part");
  check_batch(schema_, batch.array());
  const RowHashes hashes(schema_, batch.array(), keys);
  if (std::ranges::any_of(given_, &Given::is_complete)) require_open(hashes, batch.rows());
  for (std::int64_t first = 0, count = 0; first < batch.rows(); first += count) {
    count = std::min({rows_at_once_ * parts() / 16 * 15 + 1,  // a piece for each part, as far as chance allows
                      most_rows_at_once, batch.rows() - first});
    by_part_.take(hashes, first, count);
    for (int i = 1; i <= parts(); ++i)  // the ranks begin at different parts
      if (const int part = (group_.rank() + i) % parts(); by_part_.of(part).size() > 0)
        add_rows(batch, part, by_part_.of(part));
  }
}

// In pieces, whose number of rows follows from the bytes of those before.
void Shuffle::add_rows(const Batch& batch, int part, const RowSet& rows) {
  for (std::int64_t first = 0; first < rows.size();) {
    const std::int64_t count = std::min(rows_at_once_, rows.size() - first);
    const Packing packing(schema_, batch.array(), rows.part(first, count));
    const bool is_too_long = packing.bytes() > options_.piece && count > 1;
    const double of_row = std::max(1.0, static_cast<double>(packing.bytes()) / static_cast<double>(count));
    const auto fitting = static_cast<std::int64_t>(static_cast<double>(options_.piece) / of_row);
    if (is_too_long || count >= rows_at_once_ / 4)  // padding makes a few rows longer
      rows_at_once_ = std::clamp<std::int64_t>(fitting, 1, most_rows_at_once);
    if (is_too_long) {
      rows_at_once_ = std::min(rows_at_once_, count / 2);
      continue;
    }
    send_rows(part, count, packing.nodes(), packing.bytes(), [&](std::byte* into) { packing.write(into); });
    first += count;
  }
}

void Shuffle::add_rows_of_gpu(const Batch& batch, int part) {
  const Seconds timeout = group_.timeout();
  const auto packed = [&](std::int64_t first, std::int64_t count) {
    return GpuPacking(schema_, batch.array(), first, count, *stream_, timeout);
  };
  std::int64_t at_once = std::max<std::int64_t>(batch.rows(), 1);
  if (const Bytes all = packed(0, batch.rows()).bytes(); all > options_.piece && can_be_cut(schema_))
    at_once = std::max<std::int64_t>(8, at_once * static_cast<std::int64_t>(options_.piece) /
                                            static_cast<std::int64_t>(all) / 8 * 8);  // bits begin at bytes
  for (std::int64_t first = 0; first < batch.rows(); first += at_once) {
    const std::int64_t count = std::min(at_once, batch.rows() - first);
    const GpuPacking packing = packed(first, count);
    send_rows(part, count, packing.nodes(), packing.bytes(), [&](std::byte* into) {
      packing.write({into, packing.bytes(), options_.place});
      stream_->synchronize(Deadline::in(timeout));
    });
  }
}

void Shuffle::send_rows(int part, std::int64_t rows, const std::vector<PackedNode>& nodes, Bytes bytes,
                        const Write& write) {
  const int to = owner_of(part);
  PieceHead head{PieceKind::rows, static_cast<std::uint64_t>(part), static_cast<std::uint64_t>(rows), bytes, 0};
  std::shared_ptr<std::byte> block = to == group_.rank() ? exchange_.new_block()(bytes) : exchange_.block_out(bytes);
  write(block.get());
  if (to != group_.rank()) head.hash = hash_of_block(block.get(), bytes);
  Sums& sums = given_[static_cast<std::size_t>(part)].sums;
  sums = {sums.rows + head.rows, sums.pieces + 1, mixed(sums.hash, head.hash)};
  ShuffleCounts::Peer& peer = counts_.peers[static_cast<std::size_t>(to)];
  peer.rows_out += head.rows, peer.bytes_out += head.bytes, ++peer.pieces_out;
  if (to == group_.rank())
    arrive({to, head, nodes, std::move(block)});
  else
    exchange_.send(to, head, nodes, std::move(block));
}

std::uint64_t Shuffle::hash_of_block(const std::byte* block, Bytes bytes) const {
  return stream_ ? 0 : hash_of_bytes(block, bytes);
}

void Shuffle::complete(int part) {
  require_open(part);
  Given& given = given_[static_cast<std::size_t>(part)];
  given.is_complete = true;
  const PieceHead head{PieceKind::end_of_part, static_cast<std::uint64_t>(part), given.sums.rows, given.sums.pieces,
                       given.sums.hash};
  if (const int to = owner_of(part); to == group_.rank())
    arrive({to, head, {}, {}});
  else
    exchange_.send(to, head, {}, {});
}

void Shuffle::finish() {
  if (is_finished_) return;
  for (int part = 0; part < parts(); ++part)
    if (!given_[static_cast<std::size_t>(part)].is_complete) complete(part);
  is_finished_ = true;
  for (int to = 0; to < group_.size(); ++to)
    if (to != group_.rank()) exchange_.send(to, {PieceKind::end}, {}, {});
}

std::optional<int> Shuffle::next() {
  for (;;) {
    bool all = true;
    for (std::size_t i = 0; i < taken_.size(); ++i) {
      if (taken_[i].is_extracted) continue;
      if (taken_[i].complete == group_.size()) return static_cast<int>(i) * group_.size() + group_.rank();
      all = false;
    }
    if (all && exchange_.is_over()) return {};
    if (!is_finished_) refuse_shuffle("it waits for parts that this rank has not completed");
    exchange_.wait();
  }
}

std::vector<Batch> Shuffle::extract(int part) {
  if (owner_of(part) != group_.rank()) refuse_shuffle("part " + std::to_string(part) + " belongs to another rank");
  if (!given_[static_cast<std::size_t>(part)].is_complete)
    refuse_shuffle("it waits for part " + std::to_string(part) + ", which this rank has not completed");
  Taken& here = taken(static_cast<std::uint64_t>(part));
  if (here.is_extracted) refuse_shuffle("part " + std::to_string(part) + " is extracted already");
  while (here.complete < group_.size()) exchange_.wait();
  here.is_extracted = true;
  std::vector<Batch> all;
  for (std::vector<Batch>& of_rank : here.pieces) {
    std::ranges::move(of_rank, std::back_inserter(all));
    of_rank.clear();
  }
  return all;
}

ShuffleCounts Shuffle::counts() const {
  ShuffleCounts counts = counts_;
  counts.most_under_way = exchange_.most_under_way();
  counts.waited = exchange_.waited();
  return counts;
}

void Shuffle::arrive(ArrivedPiece&& piece) {
  try {
    if (piece.head.kind == PieceKind::rows) return take_rows(std::move(piece));
    if (piece.head.kind == PieceKind::end_of_part) return end_part(piece);
    if (piece.head.kind != PieceKind::end || ended_[static_cast<std::size_t>(piece.from)] != taken_.size())
      throw Error(ErrorKind::corrupt, "something else than pieces of tables has come");
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::corrupt) throw;
    fail("from rank " + std::to_string(piece.from) + ": " + error.what());
  }
}

void Shuffle::take_rows(ArrivedPiece&& piece) {
  Taken& here = taken(piece.head.part);
  const auto from = static_cast<std::size_t>(piece.from);
  if (!piece.block) piece.block = exchange_.new_block()(0);
  const std::uint64_t hash = piece.from == group_.rank() ? 0 : hash_of_block(piece.block.get(), piece.head.bytes);
  here.pieces[from].push_back(unpack(schema_, static_cast<std::int64_t>(piece.head.rows), piece.nodes, piece.block,
                                     piece.head.bytes, stream_ != nullptr));
  Sums& sums = here.of_rank[from];
  sums = {sums.rows + piece.head.rows, sums.pieces + 1, mixed(sums.hash, hash)};
  ShuffleCounts::Peer& peer = counts_.peers[from];
  peer.rows_in += piece.head.rows, peer.bytes_in += piece.head.bytes, ++peer.pieces_in;
}

void Shuffle::end_part(const ArrivedPiece& piece) {
  Taken& here = taken(piece.head.part);
  const Sums sent{piece.head.rows, piece.head.bytes, piece.head.hash};
  const Sums& come = here.of_rank[static_cast<std::size_t>(piece.from)];
  if (come.rows != sent.rows || come.pieces != sent.pieces)
    throw Error(ErrorKind::corrupt, "part " + std::to_string(piece.head.part) + " has " + std::to_string(come.rows) +
                                        " rows, not " + std::to_string(sent.rows));
  if (come.hash != sent.hash)
    throw Error(ErrorKind::corrupt, "part " + std::to_string(piece.head.part) + " has another hash than what was sent");
  ++here.complete;
  ++ended_[static_cast<std::size_t>(piece.from)];
}

Shuffle::Taken& Shuffle::taken(std::uint64_t part) {
  const auto ranks = static_cast<std::uint64_t>(group_.size());
  if (part >= static_cast<std::uint64_t>(parts()) || part % ranks != static_cast<std::uint64_t>(group_.rank()))
    throw Error(ErrorKind::corrupt, "part " + std::to_string(part) + " belongs to another rank");
  return taken_[static_cast<std::size_t>(part / ranks)];
}

void Shuffle::check_part(int part) const {
  if (part < 0 || part >= parts())
    refuse_shuffle("part " + std::to_string(part) + " is not in 0 to " + std::to_string(parts() - 1));
}

void Shuffle::require_open(int part) const {
  check_part(part);
  if (given_[static_cast<std::size_t>(part)].is_complete)
    refuse_shuffle("this rank has completed part " + std::to_string(part));
}

void Shuffle::require_open(const RowHashes& hashes, std::int64_t rows) {
  for (std::int64_t first = 0, count = 0; first < rows; first += count) {
    count = std::min(most_rows_at_once, rows - first);
    by_part_.take(hashes, first, count);
    for (int part = 0; part < parts(); ++part)
      if (by_part_.of(part).size() > 0) require_open(part);
  }
}

void Shuffle::fail(const std::string& why) {
  group_.abort("a shuffle of tables: " + why);
  throw Error(ErrorKind::corrupt, "a shuffle of tables: " + why);
}

}  // namespace waywiser
