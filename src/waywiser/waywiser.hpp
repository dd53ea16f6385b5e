#pragma once

// Includes everything that a program with ranks needs.
#include "waywiser/base/error.hpp"
#include "waywiser/group/group.hpp"
#include "waywiser/group/prepared.hpp"
#include "waywiser/group/window.hpp"
