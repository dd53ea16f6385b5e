#pragma once

#include <functional>
#include <string>

#include "waywiser/table/column_type.hpp"

namespace waywiser {

class Group;

// Collective: the schema that `parse` returns, if all ranks have the same, and say the same of what they do
// (`purpose`). Throws the same at all ranks: what `parse` has thrown at one; invalid_input that names the first column
// that differs from that of rank 0.
TableSchema agreed_schema(Group& group, const std::function<TableSchema()>& parse, const std::string& purpose);

}  // namespace waywiser
