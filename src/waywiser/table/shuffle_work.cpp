#include "waywiser/table/shuffle_work.hpp"

#include <algorithm>
#include <utility>

#include "waywiser/base/error.hpp"
#include "waywiser/device/platform.hpp"
#include "waywiser/device/stream.hpp"
#include "waywiser/group/group.hpp"
#include "waywiser/group/inside.hpp"
#include "waywiser/table/plan_piece.hpp"
#include "waywiser/table/refused_shuffle.hpp"
#include "waywiser/table/row_hash.hpp"
#include "waywiser/table/schema_agreement.hpp"

namespace waywiser {
namespace {

// What is left to the group.
ShuffleOptions with_all(ShuffleOptions options, const Group& group) {
  if (options.parts == 0) options.parts = group.size();
  if (options.piece == 0)
    options.piece = std::min(options.place.is_gpu() ? usual_piece : plan_piece(plan_of(group), usual_piece),
                             std::max(usual_piece, options.budget / 4));
  return options;
}

TableSchema agreed(Group& group, const std::function<const ArrowSchema&()>& schema, const ShuffleOptions& options) {
  const auto parse = [&] {
    check_options(options);
    if (options.place.is_gpu() && options.place.index >= group.platform()->gpu_count())
      refuse_shuffle("there is no " + text(options.place));
    return parse_schema(schema());
  };
  const std::string where = options.place.is_gpu() ? " on GPUs" : "";
  return agreed_schema(group, parse, options.purpose + " into " + std::to_string(options.parts) + " parts" + where);
}

// Its messages meet no others.
Group own_group(Group& group) { return std::move(*group.split(0, group.rank())); }

}  // namespace

ShuffleWork::ShuffleWork(Group& group, const std::function<const ArrowSchema&()>& schema, ShuffleOptions options)
    : group_(group),
      options_(with_all(std::move(options), group)),
      schema_(agreed(group, schema, options_)),
      given_(static_cast<std::size_t>(options_.parts)),
      taken_(schema_, options_, group.size(), group.rank()),
      by_part_(options_.parts),
      stream_(options_.place.is_gpu() ? group.platform()->open_stream(options_.place) : nullptr),
      blocks_(options_.place.is_gpu() ? group.platform() : nullptr, options_.place),
      exchange_(own_group(group), blocks_, schema_.nodes(), options_.budget,
                [this](ArrivedPiece&& piece) { arrive(std::move(piece)); }) {
  counts_.peers.resize(static_cast<std::size_t>(group.size()));
  blocks_.use_again(options_.piece);
  // Blocks that come back soon are still in a cache, and few of them cost few pages.
  const Bytes pieces = static_cast<Bytes>(std::max(4 * (group.size() - 1), 2 * parts()));
  if (!stream_) exchange_.limit_out(pieces * options_.piece);
  if (options_.memory == 0) blocks_.keep_together(options_.parts);
}

ShuffleWork::~ShuffleWork() = default;

int ShuffleWork::owner_of(int part) const {
  check_part(part);
  return part % group_.size();
}

void ShuffleWork::complete(int part) {
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

void ShuffleWork::finish() {
  if (is_finished_) return;
  for (int part = 0; part < parts(); ++part)
    if (!given_[static_cast<std::size_t>(part)].is_complete) complete(part);
  is_finished_ = true;
  for (int to = 0; to < group_.size(); ++to)
    if (to != group_.rank()) exchange_.send(to, {PieceKind::end}, {}, {});
}

void ShuffleWork::take_all() {
  if (!is_finished_) refuse_shuffle("it waits for parts that this rank has not completed");
  while (!exchange_.is_over()) exchange_.wait();
}

std::optional<int> ShuffleWork::next() {
  for (;;) {
    if (const auto part = taken_.complete_part()) return part;
    if (taken_.are_all_extracted() && exchange_.is_over()) return {};
    if (!is_finished_) refuse_shuffle("it waits for parts that this rank has not completed");
    exchange_.wait();
  }
}

std::vector<Batch> ShuffleWork::extract(int part) {
  if (owner_of(part) != group_.rank()) refuse_shuffle("part " + std::to_string(part) + " belongs to another rank");
  if (!given_[static_cast<std::size_t>(part)].is_complete)
    refuse_shuffle("it waits for part " + std::to_string(part) + ", which this rank has not completed");
  if (taken_.is_extracted(part)) refuse_shuffle("part " + std::to_string(part) + " is extracted already");
  while (!taken_.is_complete(part)) exchange_.wait();
  try {
    blocks_.end_part(static_cast<std::uint64_t>(part));
    return taken_.extract(part, blocks_);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::io) throw;
    fail(error);
  }
}

ShuffleCounts ShuffleWork::counts() const {
  ShuffleCounts counts = counts_;
  counts.most_under_way = exchange_.most_under_way();
  counts.waited = exchange_.waited();
  counts.spilled = taken_.spilled();
  for (std::size_t rank = 0; rank < counts.peers.size(); ++rank) counts.peers[rank].path = exchange_.paths()[rank];
  return counts;
}

std::string ShuffleWork::way_to(int rank, Bytes bytes) const {
  if (rank < 0 || rank >= group_.size() || rank == group_.rank())
    refuse_shuffle("rank " + std::to_string(rank) + " is not another one of " + std::to_string(group_.size()));
  return message_way(group_, rank, options_.place, bytes);
}

void ShuffleWork::arrive(ArrivedPiece&& piece) {
  try {
    switch (piece.head.kind) {
      case PieceKind::rows: return take_rows(std::move(piece));
      case PieceKind::end_of_part: return taken_.end_part(piece);
      case PieceKind::end: return taken_.end(piece.from);
    }
    throw Error(ErrorKind::corrupt, "something else than pieces of tables has come");
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::io) fail(error);
    if (error.kind() != ErrorKind::corrupt) throw;
    fail(Error(ErrorKind::corrupt, "from rank " + std::to_string(piece.from) + ": " + error.what()));
  }
}

void ShuffleWork::take_rows(ArrivedPiece&& piece) {
  ShuffleCounts::Peer& peer = counts_.peers[static_cast<std::size_t>(piece.from)];
  peer.rows_in += piece.head.rows, peer.bytes_in += piece.head.bytes, ++peer.pieces_in;
  if (!piece.block) piece.block = blocks_.alone(0);
  taken_.take_rows(std::move(piece));
}

void ShuffleWork::check_part(int part) const {
  if (part < 0 || part >= parts())
    refuse_shuffle("part " + std::to_string(part) + " is not in 0 to " + std::to_string(parts() - 1));
}

void ShuffleWork::require_open(int part) const {
  check_part(part);
  if (given_[static_cast<std::size_t>(part)].is_complete)
    refuse_shuffle("this rank has completed part " + std::to_string(part));
}

void ShuffleWork::fail(const Error& error) {
  const std::string why = std::string("a shuffle of tables: ") + error.what();
  group_.abort(why);
  throw Error(error.kind(), why);
}

}  // namespace waywiser
