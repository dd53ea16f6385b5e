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
#include "waywiser/table/shuffle_options.hpp"
#include "waywiser/table/taken_parts.hpp"

namespace waywiser {

class Error;
class Group;
class Stream;

// What one rank has done.
struct ShuffleCounts {
  struct Peer {
    std::uint64_t rows_out = 0, bytes_out = 0, pieces_out = 0, rows_in = 0, bytes_in = 0, pieces_in = 0;
    PathCounts path;  // none: what stays here
  };
  std::vector<Peer> peers;   // by rank; that of this rank: what stays here
  Bytes most_under_way = 0;  // bytes out and in at one time
  Seconds waited = 0;
  Bytes spilled = 0;  // to files
};

// Rows of tables to the ranks that own their parts: part p belongs to rank p % size. Each rank inserts what it has, as
// it comes, and extracts each of its parts when all ranks have completed it; there is no barrier. Pieces under way stay
// within the budget: insert() waits for room, and takes what comes meanwhile. What has come and is not extracted is
// the result, and not in the budget. Threads: its calls are calls of the group, which must outlive it. A shuffle that
// is destroyed before it is over ends the group. A rank that waits elsewhere takes no pieces: another shuffle and
// collectives come before the first insert or after the last part.
//
// On GPUs a batch goes to one part, by copies, and its work must be complete; only tables without offsets are cut into
// pieces. What has come is complete. The rows are checked at the end, a hash of them is not.
class Shuffle {
 public:
  // Collective. Throws the same at all ranks, before any row moves: invalid_input for schemas that differ, names that
  // two columns have, options that make no sense; unavailable for a type that is not served.
  Shuffle(Group& group, const ArrowSchema& schema, ShuffleOptions options = {});
  // The same for a rank whose schema may turn out to be none: what `schema` throws is thrown at all ranks.
  Shuffle(Group& group, const std::function<TableSchema()>& schema, ShuffleOptions options);
  Shuffle(const Shuffle&) = delete;
  Shuffle& operator=(const Shuffle&) = delete;
  ~Shuffle();

  const TableSchema& schema() const noexcept { return schema_; }
  int parts() const noexcept { return options_.parts; }
  Bytes piece() const noexcept { return options_.piece; }
  int owner_of(int part) const;

  // All rows to one part, or each by the hash of its values in the columns `keys`. Throws invalid_input for a batch
  // that does not have the schema, or a part that is completed; unavailable for keys that have no hash.
  void insert(const Batch& batch, int part);
  void insert(const Batch& batch, std::span<const int> keys);
  // This rank inserts no more into the part, or into any.
  void complete(int part);
  void finish();

  // Waits, behind finish(), until all that comes to this rank has come and all that it has sent is taken: extract()
  // waits for nobody then, and other calls of the group may come.
  void take_all();
  // Waits for a part of this rank that all ranks have completed and that is not extracted. Empty: all are extracted,
  // and all that this rank has sent is taken.
  std::optional<int> next();
  // The rows of the part, by the rank that gave them, then in the order of its inserts. Waits until all ranks have
  // completed it. Throws corrupt at all ranks if its rows or their hash are not those that were sent.
  std::vector<Batch> extract(int part);
  ShuffleCounts counts() const;
  // The way of a piece of as many bytes to another rank; as this rank knows it now.
  std::string way_to(int rank, Bytes bytes) const;

 private:
  struct Given {  // by this rank into a part
    PieceSums sums;
    bool is_complete = false;
  };

  void add_rows(const Batch& batch, int part, const RowSet& rows);
  void add_rows_of_gpu(const Batch& batch, int part);
  // `write` fills a block with `bytes`.
  using Write = std::function<void(std::byte*)>;
  void send_rows(int part, std::int64_t rows, const std::vector<PackedNode>& nodes, Bytes bytes, const Write& write);
  std::uint64_t hash_of_block(const std::byte* block, Bytes bytes) const;
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
  PieceExchange exchange_;
};

}  // namespace waywiser
