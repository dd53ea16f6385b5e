#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "waywiser/base/units.hpp"

struct ArrowSchema;

namespace waywiser {

// How the values of a column lie in memory.
enum class ColumnLayout { null, boolean, fixed, binary, list, fixed_list, structure };

// A column, or what is nested in one.
struct ColumnType {
  std::string name;
  std::string format;  // as Arrow's C data interface writes it, parameters included
  ColumnLayout layout = ColumnLayout::null;
  Bytes width = 0;             // of a value of `fixed`, of an offset of `binary` and `list`
  std::int64_t elements = 0;   // of a value of `fixed_list`
  bool is_dictionary = false;  // the values are indices, of this format; the only child has what they stand for
  bool is_ordered = false;     // the dictionary
  std::vector<ColumnType> children;

  // Of this column and all below it: each has its own buffers.
  std::size_t nodes() const;
  // "int64", "list<item: string>": the words of messages. Equal words mean equal types, names within included.
  std::string words() const;
};

// The columns of a table.
struct TableSchema {
  std::vector<ColumnType> columns;

  std::size_t nodes() const;
  // The places of columns. Throws invalid_input if there is none of that name.
  std::vector<int> places_of(const std::vector<std::string>& names) const;
};

// Throws invalid_input: what is given is no table, two columns have one name; unavailable: a type that is not served.
// Both name the column.
TableSchema parse_schema(const ArrowSchema& schema);

}  // namespace waywiser
