#pragma once

#include <cstdint>
#include <vector>

#include "waywiser/table/row_hash.hpp"
#include "waywiser/table/row_set.hpp"

namespace waywiser {

// Some rows of a batch by the parts that their hashes belong to, each part's in their order.
class RowsByPart {
 public:
  explicit RowsByPart(int parts) : ends_(static_cast<std::size_t>(parts)) {}

  void take(const RowHashes& hashes, std::int64_t first, std::int64_t count);
  // Until the next take().
  RowSet of(int part) const;

 private:
  std::vector<std::int64_t> ends_, rows_;
  std::vector<std::int32_t> parts_;
};

}  // namespace waywiser
