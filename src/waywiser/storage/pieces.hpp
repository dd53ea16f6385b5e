#pragma once

#include <mutex>
#include <span>
#include <vector>

#include "waywiser/storage/file_part.hpp"

namespace waywiser {

// The same bytes in pieces of at most `chunk`, in order. Pieces begin and end at multiples of `alignment` in the file,
// but for the head and the tail of a part.
std::vector<FilePart> cut(std::span<const FilePart> parts, Bytes chunk, Bytes alignment);

// Those that follow each other in the file and in memory are one part again.
std::vector<FilePart> joined(std::span<const FilePart> pieces);

// The pieces of one call, each for the worker that asks first.
class PieceQueue {
 public:
  explicit PieceQueue(std::vector<FilePart> pieces) : pieces_(std::move(pieces)) {}
  std::span<const FilePart> all() const noexcept { return pieces_; }

  const FilePart* take();  // nullptr: no more
  // Some that follow each other and together, each in whole units of `alignment`, have `room`; one at least, none at
  // the end.
  std::span<const FilePart> take_load(Bytes room, Bytes alignment);
  // Nobody takes any more. Those that nobody has taken.
  std::span<const FilePart> withdraw();

 private:
  const std::vector<FilePart> pieces_;
  std::mutex lock_;
  std::size_t next_ = 0;
};

// Throws invalid_input: a part ends beyond what a file can have.
void check_parts(std::span<const FilePart> parts);

}  // namespace waywiser
