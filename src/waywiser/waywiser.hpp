#pragma once

#include <version>
#ifndef __cpp_lib_source_location
#error "Waywiser's headers need C++20: g++ 12 or clang 15, or newer, with -std=c++20"
#endif

// Includes everything that a program with ranks needs.
#include "waywiser/base/error.hpp"
#include "waywiser/group/group.hpp"
#include "waywiser/group/prepared.hpp"
#include "waywiser/group/window.hpp"
