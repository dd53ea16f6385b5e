#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "waywiser/table/batch.hpp"
#include "waywiser/table/shuffle_counts.hpp"
#include "waywiser/table/shuffle_options.hpp"

namespace waywiser {

class Group;
class ShuffleWork;

// Rows of tables to the ranks that own their parts: part p belongs to rank p % size. Each rank inserts what it has, as
// it comes, and extracts each of its parts when all ranks have completed it; there is no barrier. Pieces under way stay
// within the budget: insert() waits for room, and takes what comes meanwhile. What has come and is not extracted is
// the result, and not in the budget. Threads: its calls are calls of the group, which must outlive it. A shuffle that
// is destroyed before it is over ends the group. A rank that waits elsewhere takes no pieces: another shuffle and
// collectives come before the first insert or after the last part.
//
// On GPUs a batch goes to one part, by copies, and its work must be complete; only tables without offsets are cut into
// pieces. What has come is complete. The rows are checked at the end, a hash of them is not.
class [[gnu::visibility("default")]] Shuffle {
 public:
  // Collective. Throws the same at all ranks, before any row moves: invalid_input for schemas that differ, names that
  // two columns have, options that make no sense; unavailable for a type that is not served.
  Shuffle(Group& group, const ArrowSchema& schema, ShuffleOptions options = {});
  // The same for a rank whose schema may turn out to be none: what `schema` throws is thrown at all ranks.
  Shuffle(Group& group, const std::function<const ArrowSchema&()>& schema, ShuffleOptions options);
  Shuffle(const Shuffle&) = delete;
  Shuffle& operator=(const Shuffle&) = delete;
  ~Shuffle();

  int parts() const noexcept;
  Bytes piece() const noexcept;  // the bytes of rows that go in one message, at most
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
  template <typename Call>
  auto in_turn(Call call) const;  // keeps other threads out

  std::unique_ptr<ShuffleWork> work_;
};

}  // namespace waywiser
