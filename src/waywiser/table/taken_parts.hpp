#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "waywiser/table/batch.hpp"
#include "waywiser/table/column_type.hpp"
#include "waywiser/table/piece_exchange.hpp"
#include "waywiser/table/shuffle_options.hpp"
#include "waywiser/table/spilled_pieces.hpp"

namespace waywiser {

// Over all pieces that one rank gives into a part; the hash is that of all their bytes.
struct PieceSums {
  std::uint64_t rows = 0, pieces = 0, hash = 0;
  void add(std::uint64_t more_rows, std::uint64_t more_hash) noexcept;
  bool operator==(const PieceSums&) const = default;
};

// What has come of the parts that belong to this rank, and from whom: part p belongs to rank p % ranks. What does not
// belong here or is not what was sent throws corrupt.
class TakenParts {
 public:
  // On a GPU the hashes of pieces are not compared. What `options` says of memory holds: above it the pieces of the
  // part that has most go to a file.
  TakenParts(const TableSchema& schema, const ShuffleOptions& options, int ranks, int rank);

  // A piece of rows, whose block is set; the end of a part, with its sums; the end of all that a rank gives.
  void take_rows(ArrivedPiece&& piece);
  void end_part(const ArrivedPiece& piece);
  void end(int from) const;

  // Of a part of this rank.
  bool is_complete(int part) const { return taken(part).complete == ranks_; }
  bool is_extracted(int part) const { return taken(part).is_extracted; }
  // The first part that all ranks have completed and that is not extracted.
  std::optional<int> complete_part() const;
  bool are_all_extracted() const;
  // By the rank that gave them, then in its order. The part must be complete. `blocks`: for what is in a file.
  std::vector<Batch> extract(int part, const PieceBlocks& blocks);
  // Bytes that have gone to files.
  Bytes spilled() const noexcept { return spilled_; }

 private:
  struct Kept {
    Batch batch;         // of the block; none: in the file
    ArrivedPiece piece;  // if it may go there
    Bytes begin = 0;     // in the file
  };
  struct Taken {
    std::vector<PieceSums> of_rank;
    std::vector<std::vector<Kept>> pieces;
    Bytes held = 0;  // of those in memory
    std::unique_ptr<SpilledPieces> file;
    int complete = 0;
    bool is_extracted = false;
  };
  const Taken& taken(int part) const { return taken_[static_cast<std::size_t>(part / ranks_)]; }
  Taken& taken_of(std::uint64_t part);
  Batch batch_of(const ArrivedPiece& piece) const;
  void spill();

  const TableSchema& schema_;
  int parts_, ranks_, rank_;
  bool hashes_;
  Bytes memory_, held_ = 0, spilled_ = 0;
  std::filesystem::path folder_;
  std::unique_ptr<SpillFolder> spill_folder_;
  std::vector<Taken> taken_;        // part p of this rank at p / ranks
  std::vector<std::size_t> ended_;  // of these parts, by the rank that gave them
};

}  // namespace waywiser
