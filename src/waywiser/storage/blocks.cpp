#include "waywiser/storage/blocks.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "waywiser/policy/defaults.hpp"
#include "waywiser/storage/pieces.hpp"

namespace waywiser {
namespace {

bool is_whole(const StorageFile& file, const FilePart& piece) {
  return piece.offset % file.block() == 0 && piece.memory.bytes % file.block() == 0;
}

// One write is faster than one past the page cache and one through it.
bool is_written_through_cache(const StorageFile& file, const FilePart& part) {
  return !is_whole(file, part) && part.memory.bytes <= defaults::file_cached_tail;
}

}  // namespace

BlockTransfer::BlockTransfer(FileUse use, const StorageFile& file, const FilePart& piece, Mapping& bounce, bool always)
    : use_(use),
      piece_(piece),
      from_(piece.offset / file.block() * file.block()),
      bytes_((piece.end() - from_ + file.block() - 1) / file.block() * file.block()),
      before_(bytes_) {
  const Bytes first = piece.offset == from_ ? from_ : from_ + file.block();
  const Bytes last = piece.end() / file.block() * file.block();
  if (!always && first < last) {
    const FilePart blocks{first, piece.memory.slice(first - piece.offset, last - first)};
    if (file.can_go_directly(blocks)) {
      before_ = first - from_;
      own_ = last - first;
      own_memory_ = blocks.memory.data;
    }
  }
  if (const Bytes bounced = bytes_ - own_; bounced != 0) {
    if (bounce.length() < bounced) bounce = Mapping::anonymous(bounced, "memory for direct access to a file");
    bounce_ = bounce.data();
    if (use == FileUse::write) std::memcpy(bounce_, piece.memory.data, piece.memory.bytes);
  }
  find_memory_left();
}

void BlockTransfer::find_memory_left() {
  count_ = 0;
  const auto add = [&](std::byte* memory, Bytes begin, Bytes end) {
    const Bytes skipped = std::max(begin, done_) - begin;
    if (begin + skipped < end) left_[count_++] = {memory + skipped, end - begin - skipped};
  };
  add(bounce_, 0, before_);
  add(own_memory_, before_, before_ + own_);
  add(bounce_ + before_, before_ + own_, bytes_);
}

void BlockTransfer::copy_out() const {
  const Bytes skipped = piece_.offset - from_;
  const Bytes head = before_ == 0 ? 0 : std::min(before_ - skipped, piece_.memory.bytes);
  const Bytes tail = piece_.memory.bytes - head - own_;
  if (head != 0) std::memcpy(piece_.memory.data, bounce_ + skipped, head);
  if (tail != 0) std::memcpy(piece_.memory.data + head + own_, bounce_ + before_, tail);
}

bool BlockTransfer::moved(Bytes bytes, const StorageFile& file) {
  done_ += bytes;
  const bool complete = from_ + done_ >= piece_.end();
  if (!complete && (bytes == 0 || done_ % file.block() != 0)) file.fail_short(use_, piece_);
  if (!complete) find_memory_left();
  if (complete && use_ == FileUse::read) copy_out();
  return complete;
}

std::vector<FilePart> direct_pieces(FileUse use, const StorageFile& file, std::span<const FilePart> parts,
                                    Bytes chunk) {
  std::vector<FilePart> pieces;
  if (use == FileUse::write) {
    for (const FilePart& part : parts)
      if (!is_written_through_cache(file, part))
        std::ranges::copy_if(cut({&part, 1}, chunk, file.block()), std::back_inserter(pieces),
                             [&](const FilePart& each) { return is_whole(file, each); });
    return pieces;
  }
  const Bytes step = std::max(chunk / file.block(), Bytes{1}) * file.block();
  for (const FilePart& part : parts)
    for (Bytes at = part.offset; at < part.end();) {
      Bytes next = std::min(at / file.block() * file.block() + step, part.end());
      if (part.end() - next < file.block()) next = part.end();
      pieces.push_back({at, part.memory.slice(at - part.offset, next - at)});
      at = next;
    }
  return pieces;
}

void write_rest(const StorageFile& file, std::span<const FilePart> parts) {
  for (const FilePart& part : parts) {
    if (is_written_through_cache(file, part)) {
      file.transfer(FileUse::write, file.cached_descriptor(), part);
      continue;
    }
    const Bytes head = std::min((file.block() - part.offset % file.block()) % file.block(), part.memory.bytes);
    const Bytes tail = (part.memory.bytes - head) % file.block();
    if (head != 0) file.transfer(FileUse::write, file.cached_descriptor(), {part.offset, part.memory.slice(0, head)});
    if (tail != 0)
      file.transfer(FileUse::write, file.cached_descriptor(),
                    {part.end() - tail, part.memory.slice(part.memory.bytes - tail, tail)});
  }
}

}  // namespace waywiser
