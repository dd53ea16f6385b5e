#pragma once

#include "waywiser/base/units.hpp"
#include "waywiser/device/region.hpp"

namespace waywiser {

// A range of a file and the memory that it is read into or written from: the region of a file, which only mechanisms of
// storage take.
struct FilePart {
  Bytes offset = 0;
  Region memory;  // a write only reads it

  Bytes end() const noexcept { return offset + memory.bytes; }
};

}  // namespace waywiser
