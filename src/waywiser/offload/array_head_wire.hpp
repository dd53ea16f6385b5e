#pragma once

#include <string>

#include "waywiser/offload/array_head.hpp"

namespace waywiser {

class WireReader;
class WireWriter;

std::string type_text(const ArrayHead& head);  // "bool" or the type's name
// Empty: the array fits into room of so many elements of a type. Otherwise what is wrong.
std::string why_no_room(const ArrayHead& head, DataType type, std::uint64_t count);
// Throws invalid_input: too many dimensions, or more bytes than any array has.
void check(const ArrayHead& head);
void write(WireWriter& writer, const ArrayHead& head);
// Throws invalid_input.
ArrayHead read_array_head(WireReader& reader);

}  // namespace waywiser
