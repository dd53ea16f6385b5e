#include "waywiser/table/column_values.hpp"

#include <algorithm>
#include <string>

#include "waywiser/base/error.hpp"

namespace waywiser {
namespace {

[[noreturn]] void refuse_values(const ColumnType& type, const char* why) {
  throw Error(ErrorKind::invalid_input, "values of column " + quoted(type.name, 60) + ": " + why);
}

std::int64_t buffers_of(ColumnLayout layout) {
  switch (layout) {
    case ColumnLayout::null: return 0;
    case ColumnLayout::structure:
    case ColumnLayout::fixed_list: return 1;
    case ColumnLayout::binary: return 3;
    default: return 2;
  }
}

bool are_there(const ArrowArray& array) {
  if (array.n_children == 0) return true;
  if (array.n_children < 0 || array.children == nullptr) return false;
  return std::none_of(array.children, array.children + array.n_children,
                      [](const ArrowArray* child) { return child == nullptr; });
}

void check_values(const ColumnType& type, const ArrowArray& array, std::int64_t least_rows) {
  if (array.length < least_rows || array.offset < 0) refuse_values(type, "too few rows");
  const std::int64_t buffers = buffers_of(type.layout);
  if (array.n_buffers != buffers || (buffers > 0 && array.buffers == nullptr)) refuse_values(type, "not its buffers");
  if (buffers > 1 && array.buffers[1] == nullptr && array.length > 0) refuse_values(type, "a buffer is not there");
  const std::int64_t children = type.is_dictionary ? 0 : static_cast<std::int64_t>(type.children.size());
  if (array.n_children != children || !are_there(array) || (array.dictionary != nullptr) != type.is_dictionary)
    refuse_values(type, "not the columns in it");
  if (type.is_dictionary) check_values(type.children.front(), *array.dictionary, 0);
  const std::int64_t end = array.offset + array.length;
  for (std::int64_t i = 0; i < children; ++i)
    check_values(type.children[static_cast<std::size_t>(i)], *array.children[i],
                 type.layout == ColumnLayout::structure    ? end
                 : type.layout == ColumnLayout::fixed_list ? end * type.elements
                                                           : 0);
}

}  // namespace

void check_batch(const TableSchema& schema, const ArrowArray& batch) {
  const auto refuse = [](const std::string& why) { throw Error(ErrorKind::invalid_input, "a table has " + why); };
  if (batch.n_children != static_cast<std::int64_t>(schema.columns.size()))
    refuse(std::to_string(batch.n_children) + " columns, not " + std::to_string(schema.columns.size()));
  if (!are_there(batch) || batch.length < 0 || batch.offset < 0) refuse("no columns or no rows where it says so");
  for (std::size_t i = 0; i < schema.columns.size(); ++i)
    check_values(schema.columns[i], *batch.children[i], batch.offset + batch.length);
}

}  // namespace waywiser
