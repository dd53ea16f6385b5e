#pragma once

// One-sided communication from inside kernels, for CUDA sources: docs/one-sided.md.
#include "waywiser/heap/device/cuda_heap_block.cuh"
#include "waywiser/heap/device/lines.hpp"
#include "waywiser/heap/device/messages.hpp"
#include "waywiser/heap/device/one_sided.hpp"
#include "waywiser/heap/device/packets.hpp"
#include "waywiser/heap/device/team.hpp"
