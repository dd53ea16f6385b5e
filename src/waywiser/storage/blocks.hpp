#pragma once

#include <span>
#include <vector>

#include "waywiser/device/mapping.hpp"
#include "waywiser/storage/storage_file.hpp"

namespace waywiser {

// A transfer past the page cache: whole blocks of a file and aligned memory, either the piece's own or a bounce of
// them.
class BlockTransfer {
 public:
  // Prepares it; a write that bounces copies into the bounce. `bounce` grows as needed and serves one piece at a time;
  // `always`: also a piece that could go as it is.
  BlockTransfer(FileUse use, const StorageFile& file, const FilePart& piece, Mapping& bounce, bool always = false);

  // What is left of it.
  Bytes offset() const noexcept { return from_ + done_; }
  std::byte* memory() const noexcept { return at_ + done_; }
  Bytes bytes() const noexcept { return bytes_ - done_; }
  const FilePart& piece() const noexcept { return piece_; }

  // The kernel has moved so many of bytes(). True: all are there; a read that bounced is copied out. Throws io if
  // the file ends before, or if a write stops in the middle of a block.
  bool moved(Bytes bytes, const StorageFile& file);

 private:
  FileUse use_;
  FilePart piece_;
  Bytes from_, bytes_, done_ = 0;
  bool bounced_;
  std::byte* at_;
};

// Pieces for direct access. Those of a write that are no whole blocks are written by write_rest(), when the others are
// there: a page is never written both ways at once.
std::vector<FilePart> direct_pieces(FileUse use, const StorageFile& file, std::span<const FilePart> parts, Bytes chunk);
void write_rest(const StorageFile& file, std::span<const FilePart> parts);

}  // namespace waywiser
