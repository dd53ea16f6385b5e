#pragma once

#include <sys/uio.h>

#include <array>
#include <span>
#include <vector>

#include "waywiser/device/mapping.hpp"
#include "waywiser/storage/storage_file.hpp"

namespace waywiser {

// A transfer past the page cache: whole blocks of a file and aligned memory. Where the piece's own memory is aligned,
// only the blocks of its head and tail go through a bounce, in the same transfer; otherwise all of it does.
class BlockTransfer {
 public:
  // Prepares it; a write that bounces copies into the bounce. `bounce` grows as needed and serves one piece at a time;
  // `always`: also a piece that could go as it is.
  BlockTransfer(FileUse use, const StorageFile& file, const FilePart& piece, Mapping& bounce, bool always = false);
  BlockTransfer(const BlockTransfer&) = delete;  // the kernel reads what memory() returns
  BlockTransfer& operator=(const BlockTransfer&) = delete;

  // What is left of it, and its memory in the order of the file.
  Bytes offset() const noexcept { return from_ + done_; }
  Bytes bytes() const noexcept { return bytes_ - done_; }
  std::span<const iovec> memory() const noexcept { return {left_.data(), count_}; }
  const FilePart& piece() const noexcept { return piece_; }

  // The kernel has moved so many of bytes(). True: all are there; a read that bounced is copied out. Throws io if
  // the file ends before, or if a write stops in the middle of a block.
  bool moved(Bytes bytes, const StorageFile& file);

 private:
  void find_memory_left();
  void copy_out() const;

  FileUse use_;
  FilePart piece_;
  Bytes from_, bytes_, done_ = 0;
  Bytes before_, own_ = 0;  // bytes that bounce first; then so many go as they are, and the rest bounces
  std::byte *bounce_ = nullptr, *own_memory_ = nullptr;
  std::array<iovec, 3> left_{};
  std::size_t count_ = 0;
};

// Pieces for direct access. Head and tail of a part that is read go with the blocks beside them, so that a piece has up
// to a block more than `chunk`. Those of a write that are no whole blocks are written by write_rest(), when the others
// are there: a page is never written both ways at once. So are short parts as a whole where they have a head or a tail.
std::vector<FilePart> direct_pieces(FileUse use, const StorageFile& file, std::span<const FilePart> parts, Bytes chunk);
void write_rest(const StorageFile& file, std::span<const FilePart> parts);

}  // namespace waywiser
