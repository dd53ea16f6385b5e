#pragma once

#include <string>

namespace waywiser {

// The bytes of code that a program hands over without their number: PTX or source up to a zero, a cubin (ELF), a
// fatbin, or what compilers put around a fatbin. Empty for a null pointer.
std::string code_at(const void* image);

}  // namespace waywiser
