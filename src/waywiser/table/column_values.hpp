#pragma once

#include <cstdint>

#include "waywiser/table/arrow_interface.h"
#include "waywiser/table/column_type.hpp"

namespace waywiser {

// The values of a column that a program has given, or of what is nested in one.
class ColumnValues {
 public:
  ColumnValues(const ColumnType& type, const ArrowArray& array) : type_(&type), array_(&array) {}

  const ColumnType& type() const noexcept { return *type_; }
  std::int64_t size() const noexcept { return array_->length; }
  bool may_be_null() const noexcept {
    return type_->layout == ColumnLayout::null || (array_->null_count != 0 && validity() != nullptr);
  }
  bool is_null(std::int64_t row) const noexcept {
    return type_->layout == ColumnLayout::null || (validity() != nullptr && !bit(validity(), row));
  }
  bool truth(std::int64_t row) const noexcept { return bit(buffer<std::uint8_t>(1), row); }
  // The value of row 0, or its offset.
  const std::byte* fixed() const noexcept {
    return buffer<std::byte>(1) + static_cast<Bytes>(array_->offset) * type_->width;
  }
  template <typename Offset>
  const Offset* offsets() const noexcept {
    return buffer<Offset>(1) + array_->offset;
  }
  const std::byte* data() const noexcept { return buffer<std::byte>(2); }
  // What lies in this column, or its dictionary. Row r of a struct is there row offset() + r.
  ColumnValues child(std::size_t number) const {
    return {type_->children[number], type_->is_dictionary ? *array_->dictionary : *array_->children[number]};
  }
  std::int64_t offset() const noexcept { return array_->offset; }
  // A bitmap, which begins offset() bits before row 0.
  const std::byte* bits(std::size_t number) const noexcept { return buffer<std::byte>(static_cast<int>(number)); }

 private:
  template <typename T>
  const T* buffer(int number) const noexcept {
    return static_cast<const T*>(array_->buffers[number]);
  }
  const std::uint8_t* validity() const noexcept { return buffer<std::uint8_t>(0); }
  bool bit(const std::uint8_t* bits, std::int64_t row) const noexcept {
    const std::int64_t at = array_->offset + row;
    return ((bits[at >> 3] >> (at & 7)) & 1) != 0;
  }

  const ColumnType* type_;
  const ArrowArray* array_;
};

// Throws invalid_input unless the batch has the columns of the schema, with their buffers.
void check_batch(const TableSchema& schema, const ArrowArray& batch);

}  // namespace waywiser
