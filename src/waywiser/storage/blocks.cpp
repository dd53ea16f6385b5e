#include "waywiser/storage/blocks.hpp"

#include <algorithm>
#include <cstring>

#include "waywiser/storage/pieces.hpp"

namespace waywiser {
namespace {

bool is_whole(const StorageFile& file, const FilePart& piece) {
  return piece.offset % file.block() == 0 && piece.memory.bytes % file.block() == 0;
}

}  // namespace

BlockTransfer::BlockTransfer(FileUse use, const StorageFile& file, const FilePart& piece, Mapping& bounce, bool always)
    : use_(use),
      piece_(piece),
      from_(piece.offset / file.block() * file.block()),
      bytes_((piece.end() - from_ + file.block() - 1) / file.block() * file.block()),
      bounced_(always || !file.can_go_directly(piece)),
      at_(piece.memory.data) {
  if (!bounced_) return;
  if (bounce.length() < bytes_) bounce = Mapping::anonymous(bytes_, "memory for direct access to a file");
  at_ = bounce.data();
  if (use == FileUse::write) std::memcpy(at_, piece.memory.data, piece.memory.bytes);
}

bool BlockTransfer::moved(Bytes bytes, const StorageFile& file) {
  done_ += bytes;
  const bool complete = from_ + done_ >= piece_.end();
  if (!complete && (bytes == 0 || done_ % file.block() != 0)) file.fail_short(use_, piece_);
  if (complete && bounced_ && use_ == FileUse::read)
    std::memcpy(piece_.memory.data, at_ + (piece_.offset - from_), piece_.memory.bytes);
  return complete;
}

std::vector<FilePart> direct_pieces(FileUse use, const StorageFile& file, std::span<const FilePart> parts,
                                    Bytes chunk) {
  std::vector<FilePart> pieces = cut(parts, chunk, file.block());
  if (use == FileUse::write) std::erase_if(pieces, [&](const FilePart& each) { return !is_whole(file, each); });
  return pieces;
}

void write_rest(const StorageFile& file, std::span<const FilePart> parts) {
  for (const FilePart& part : parts) {
    const Bytes head = std::min((file.block() - part.offset % file.block()) % file.block(), part.memory.bytes);
    const Bytes tail = (part.memory.bytes - head) % file.block();
    if (head != 0) file.transfer(FileUse::write, file.cached_descriptor(), {part.offset, part.memory.slice(0, head)});
    if (tail != 0)
      file.transfer(FileUse::write, file.cached_descriptor(),
                    {part.end() - tail, part.memory.slice(part.memory.bytes - tail, tail)});
  }
}

}  // namespace waywiser
