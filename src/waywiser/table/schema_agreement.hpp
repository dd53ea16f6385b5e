#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "waywiser/table/column_type.hpp"

namespace waywiser {

class Group;

// Collective: the schema that `parse` returns, if all ranks have the same, and say the same of what they do
// (`purpose`). Throws the same at all ranks: what `parse` has thrown at one; invalid_input that names the first column
// that differs from that of rank 0.
TableSchema agreed_schema(Group& group, const std::function<TableSchema()>& parse, const std::string& purpose);

// The same for tables that are none of Arrow's: names and types of columns, as `columns` returns them.
using NamedTypes = std::vector<std::pair<std::string, std::string>>;
void agree_on_columns(Group& group, const std::function<NamedTypes()>& columns, const std::string& purpose);

}  // namespace waywiser
