#include "waywiser/table/taken_parts.hpp"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "waywiser/base/error.hpp"
#include "waywiser/table/mix.hpp"
#include "waywiser/table/unpack.hpp"

namespace waywiser {

void PieceSums::add(std::uint64_t more_rows, std::uint64_t more_hash) noexcept {
  rows += more_rows, ++pieces, hash = mixed(hash, more_hash);
}

TakenParts::TakenParts(const TableSchema& schema, int parts, int ranks, int rank, bool hashes)
    : schema_(schema),
      parts_(parts),
      ranks_(ranks),
      rank_(rank),
      hashes_(hashes),
      ended_(static_cast<std::size_t>(ranks)) {
  const auto all = static_cast<std::size_t>(ranks);
  for (int part = rank; part < parts; part += ranks)
    taken_.push_back({std::vector<PieceSums>(all), std::vector<std::vector<Batch>>(all)});
}

void TakenParts::take_rows(ArrivedPiece&& piece) {
  Taken& here = taken_of(piece.head.part);
  const auto from = static_cast<std::size_t>(piece.from);
  const std::uint64_t hash = !hashes_ || piece.from == rank_ ? 0 : hash_of_bytes(piece.block.get(), piece.head.bytes);
  here.pieces[from].push_back(unpack(schema_, static_cast<std::int64_t>(piece.head.rows), piece.nodes, piece.block,
                                     piece.head.bytes, !hashes_));
  here.of_rank[from].add(piece.head.rows, hash);
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

std::vector<Batch> TakenParts::extract(int part) {
  Taken& here = taken_[static_cast<std::size_t>(part / ranks_)];
  here.is_extracted = true;
  std::vector<Batch> all;
  for (std::vector<Batch>& of_rank : here.pieces) {
    std::ranges::move(of_rank, std::back_inserter(all));
    of_rank.clear();
  }
  return all;
}

TakenParts::Taken& TakenParts::taken_of(std::uint64_t part) {
  const auto ranks = static_cast<std::uint64_t>(ranks_);
  if (part >= static_cast<std::uint64_t>(parts_) || part % ranks != static_cast<std::uint64_t>(rank_))
    throw Error(ErrorKind::corrupt, "part " + std::to_string(part) + " belongs to another rank");
  return taken_[static_cast<std::size_t>(part / ranks)];
}

}  // namespace waywiser
