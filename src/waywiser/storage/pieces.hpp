#pragma once

#include <span>
#include <vector>

#include "waywiser/storage/file_part.hpp"

namespace waywiser {

// The same bytes in pieces of at most `chunk`, in order. Pieces begin and end at multiples of `alignment` in the file,
// but for the head and the tail of a part.
std::vector<FilePart> cut(std::span<const FilePart> parts, Bytes chunk, Bytes alignment);

// Throws invalid_input: a part ends beyond what a file can have.
void check_parts(std::span<const FilePart> parts);

}  // namespace waywiser
