#include "waywiser/table/taken_parts.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "waywiser/base/error.hpp"
#include "waywiser/table/block_hash.hpp"
#include "waywiser/table/mix.hpp"
#include "waywiser/table/unpack.hpp"

namespace waywiser {

void PieceSums::add(std::uint64_t more_rows, std::uint64_t more_hash) noexcept {
  rows += more_rows, ++pieces, hash = mixed(hash, more_hash);
}

TakenParts::TakenParts(const TableSchema& schema, const ShuffleOptions& options, int ranks, int rank)
    : schema_(schema),
      parts_(options.parts),
      ranks_(ranks),
      rank_(rank),
      hashes_(!options.place.is_gpu()),
      memory_(options.memory),
      folder_(options.spill),
      ended_(static_cast<std::size_t>(ranks)) {
  const auto all = static_cast<std::size_t>(ranks);
  for (int part = rank; part < parts_; part += ranks) {
    Taken& each = taken_.emplace_back();
    each.of_rank.resize(all);
    each.pieces.resize(all);
  }
}

void TakenParts::take_rows(ArrivedPiece&& piece) {
  Taken& here = taken_of(piece.head.part);
  const auto from = static_cast<std::size_t>(piece.from);
  const std::uint64_t hash = !hashes_ || piece.from == rank_ ? 0 : hash_of_block(piece.block.get(), piece.head.bytes);
  Kept kept{batch_of(piece), {}};
  const std::uint64_t rows = piece.head.rows;
  if (memory_ > 0) {
    held_ += piece.head.bytes, here.held += piece.head.bytes;
    kept.piece = std::move(piece);
  }
  here.pieces[from].push_back(std::move(kept));
  here.of_rank[from].add(rows, hash);
  while (memory_ > 0 && held_ > memory_) spill();
}

Batch TakenParts::batch_of(const ArrivedPiece& piece) const {
  return unpack(schema_, static_cast<std::int64_t>(piece.head.rows), piece.nodes, piece.block, piece.head.bytes,
                !hashes_);
}

void TakenParts::spill() {
  const auto most = std::ranges::max_element(taken_, {}, &Taken::held);
  if (!spill_folder_) spill_folder_ = std::make_unique<SpillFolder>(folder_);
  if (!most->file)
    most->file = std::make_unique<SpilledPieces>(spill_folder_->path() / std::to_string(most - taken_.begin()));
  for (std::vector<Kept>& of_rank : most->pieces)
    for (Kept& kept : of_rank) {
      if (!kept.piece.block) continue;
      kept.begin = most->file->add({kept.piece.block.get(), kept.piece.head.bytes, host(0)});
      kept.batch = {};
      kept.piece.block.reset();
    }
  held_ -= most->held, spilled_ += most->held;
  most->held = 0;
}

void TakenParts::end_part(const ArrivedPiece& piece) {
  Taken& here = taken_of(piece.head.part);
  const PieceSums sent{piece.head.rows, piece.head.bytes, piece.head.hash};
  const PieceSums& come = here.of_rank[static_cast<std::size_t>(piece.from)];
  if (come.rows != sent.rows || come.pieces != sent.pieces)
    throw Error(ErrorKind::corrupt, "part " + std::to_string(piece.head.part) + " has " + std::to_string(come.rows) +
                                        " rows, not " + std::to_string(sent.rows));
  if (come.hash != sent.hash)
    throw Error(ErrorKind::corrupt, "part " + std::to_string(piece.head.part) + " has another hash than what was sent");
  ++here.complete;
  ++ended_[static_cast<std::size_t>(piece.from)];
}

void TakenParts::end(int from) const {
  if (ended_[static_cast<std::size_t>(from)] != taken_.size())
    throw Error(ErrorKind::corrupt, "something else than pieces of tables has come");
}

std::optional<int> TakenParts::complete_part() const {
  const auto found =
      std::ranges::find_if(taken_, [this](const Taken& each) { return !each.is_extracted && each.complete == ranks_; });
  if (found == taken_.end()) return {};
  return static_cast<int>(found - taken_.begin()) * ranks_ + rank_;
}

bool TakenParts::are_all_extracted() const { return std::ranges::all_of(taken_, &Taken::is_extracted); }

std::vector<Batch> TakenParts::extract(int part, const PieceBlocks& blocks) {
  Taken& here = taken_[static_cast<std::size_t>(part / ranks_)];
  here.is_extracted = true;
  held_ -= std::exchange(here.held, 0);
  std::vector<Batch> all;
  for (std::vector<Kept>& of_rank : here.pieces) {
    for (Kept& kept : of_rank) {
      if (here.file && !kept.piece.block) {
        const std::shared_ptr<std::byte> block = blocks.alone(kept.piece.head.bytes);
        here.file->read(kept.begin, {block.get(), kept.piece.head.bytes, host(0)});
        kept.piece.block = block;
        kept.batch = batch_of(kept.piece);
      }
      all.push_back(std::move(kept.batch));
    }
    of_rank.clear();
  }
  here.file.reset();
  return all;
}

TakenParts::Taken& TakenParts::taken_of(std::uint64_t part) {
  const auto ranks = static_cast<std::uint64_t>(ranks_);
  if (part >= static_cast<std::uint64_t>(parts_) || part % ranks != static_cast<std::uint64_t>(rank_))
    throw Error(ErrorKind::corrupt, "part " + std::to_string(part) + " belongs to another rank");
  return taken_[static_cast<std::size_t>(part / ranks)];
}

}  // namespace waywiser
