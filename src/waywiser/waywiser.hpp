#pragma once

// All that a program needs for ranks that talk to each other.
#include "waywiser/base/error.hpp"
#include "waywiser/group/group.hpp"
#include "waywiser/group/prepared.hpp"
#include "waywiser/group/window.hpp"
