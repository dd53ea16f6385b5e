#pragma once

#include <cstddef>
#include <functional>

#include "waywiser/storage/pieces.hpp"

namespace waywiser {

// Calls work(worker, i) for every i below `count`, by up to `threads` threads, this one among them; workers count from
// 0. What one throws first is thrown when all have ended; the others take no further i. The other threads stay for
// later calls; where the processors are busy, those that come too late are not waited for.
void share_out(std::size_t count, unsigned threads, const std::function<void(unsigned, std::size_t)>& work);

// Calls work(worker, piece) for every piece that is there to be taken.
void share_out(PieceQueue& pieces, unsigned threads, const std::function<void(unsigned, const FilePart&)>& work);

}  // namespace waywiser
