#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "waywiser/table/batch.hpp"
#include "waywiser/table/pack.hpp"
#include "waywiser/table/piece_exchange.hpp"
#include "waywiser/table/row_set.hpp"
#include "waywiser/table/rows_by_part.hpp"
#include "waywiser/table/shuffle_counts.hpp"
#include "waywiser/table/shuffle_options.hpp"
#include "waywiser/table/taken_parts.hpp"

namespace waywiser {

class Error;
class Group;
class PackingByPart;
class Stream;

// What a Shuffle does, whose calls these are.
class ShuffleWork {
 public:
  ShuffleWork(Group& group, const std::function<const ArrowSchema&()>& schema, ShuffleOptions options);
  ShuffleWork(const ShuffleWork&) = delete;
  ShuffleWork& operator=(const ShuffleWork&) = delete;
  ~ShuffleWork();

  Group& group() const noexcept { return group_; }
  int parts() const noexcept { return options_.parts; }
  Bytes piece() const noexcept { return options_.piece; }
  int owner_of(int part) const;

  void insert(const Batch& batch, int part);
  void insert(const Batch& batch, std::span<const int> keys);
  void complete(int part);
  void finish();
  void take_all();
  std::optional<int> next();
  std::vector<Batch> extract(int part);
  ShuffleCounts counts() const;
  std::string way_to(int rank, Bytes bytes) const;

 private:
  struct Given {  // by this rank into a part
    PieceSums sums;
    bool is_complete = false;
  };

  void add_rows(const Batch& batch, int part, const RowSet& rows);
  void add_rows_by_part(const Batch& batch);  // those of by_part_
  // For parts of by_part_ that are to go in one piece, if all of these may be under way at once.
  void take_blocks(const PackingByPart& packing, std::span<std::shared_ptr<std::byte>> blocks);
  void note_length(Bytes bytes, std::int64_t rows, bool is_too_long);
  void add_rows_of_gpu(const Batch& batch, int part);
  std::shared_ptr<std::byte> block_for(int part, Bytes bytes);  // behind make_room() for that of another rank
  void send_rows(int part, std::int64_t rows, const std::vector<PackedNode>& nodes, Bytes bytes, std::uint64_t hash,
                 std::shared_ptr<std::byte> block);
  void arrive(ArrivedPiece&& piece);
  void take_rows(ArrivedPiece&& piece);
  void check_part(int part) const;
  void require_open(int part) const;
  void require_open(const RowHashes& hashes, std::int64_t rows);  // the parts of these rows
  [[noreturn]] void fail(const Error& error);

  Group& group_;
  ShuffleOptions options_;
  TableSchema schema_;
  std::vector<Given> given_;
  TakenParts taken_;
  ShuffleCounts counts_;
  std::int64_t rows_at_once_ = 1 << 16;
  bool is_finished_ = false;
  RowsByPart by_part_;
  std::unique_ptr<Stream> stream_;  // of the GPU
  PieceBlocks blocks_;
  PieceExchange exchange_;
};

}  // namespace waywiser
