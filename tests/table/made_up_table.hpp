#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "waywiser/table/batch.hpp"

namespace waywiser {

// Arrays and schemas of Arrow for tests, with any buffers.
struct MadeUpColumn {
  std::string name, format;
  std::int64_t rows = 0, nulls = 0, offset = 0;
  std::vector<std::shared_ptr<void>> buffers = {};
  std::vector<MadeUpColumn> children = {};
  std::vector<MadeUpColumn> dictionary = {};  // one or none
};

// Tables of int64 "key" and string "text", with a null in "text" where the key is a multiple of 7.
struct KeysAndTexts {
  static std::string text_of(std::int64_t key) { return std::string(static_cast<std::size_t>(key % 5), 'x'); }
  static std::vector<MadeUpColumn> columns(const std::vector<std::int64_t>& keys);
  // The keys of a batch, whose texts must be theirs.
  static std::vector<std::int64_t> keys_of(const Batch& batch);
};

std::shared_ptr<void> bytes_of_values(const void* values, std::size_t bytes);
template <typename T>
std::shared_ptr<void> buffer_of(const std::vector<T>& values) {
  return bytes_of_values(values.data(), values.size() * sizeof(T));
}

Batch made_batch(const std::vector<MadeUpColumn>& columns, std::int64_t rows, std::int64_t offset = 0);

// A schema that is released with it.
class MadeUpSchema {
 public:
  explicit MadeUpSchema(const std::vector<MadeUpColumn>& columns);
  explicit MadeUpSchema(ArrowSchema schema) : schema_(schema) {}
  MadeUpSchema(const MadeUpSchema&) = delete;
  MadeUpSchema& operator=(const MadeUpSchema&) = delete;
  ~MadeUpSchema() { schema_.release(&schema_); }
  const ArrowSchema& get() const { return schema_; }

 private:
  ArrowSchema schema_{};
};

}  // namespace waywiser
