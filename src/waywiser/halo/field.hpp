#pragma once

#include <cstddef>

#include "waywiser/collective/neighbor_exchange/array_part.hpp"

namespace waywiser {

// The values that one array holds for each cell of a partition.
struct HaloField {
  DataType type = DataType::float64;
  std::size_t components = 1;  // of a vector field
  bool planar = false;         // one component of all cells after the other; else the components of a cell together

  std::size_t bytes_per_cell() const { return bytes_of(type) * components; }
  bool operator==(const HaloField&) const = default;
};

// The part of a field's array that belongs to a part of the cells, in bytes; `all` cells are in the array.
ArrayPart bytes_of_cells(const ArrayPart& cells, const HaloField& field, std::size_t all);
// The same of one component of a planar field.
ArrayPart bytes_of_component(const ArrayPart& cells, const HaloField& field, std::size_t all, std::size_t component);
// Whether bytes_of_cells() gives a list of runs where the cells are a box: as long a list as the part has runs.
bool makes_a_list(const ArrayPart& cells, const HaloField& field);

}  // namespace waywiser
