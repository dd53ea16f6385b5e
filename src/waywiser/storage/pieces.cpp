#include "waywiser/storage/pieces.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "waywiser/base/error.hpp"

namespace waywiser {

std::vector<FilePart> cut(std::span<const FilePart> parts, Bytes chunk, Bytes alignment) {
  const Bytes step = std::max(chunk / alignment, Bytes{1}) * alignment;
  std::vector<FilePart> pieces;
  for (const FilePart& part : parts) {
    const Bytes whole_until = part.end() / alignment * alignment;
    for (Bytes at = part.offset; at < part.end();) {
      Bytes next = (at / alignment + 1) * alignment;                     // of a head
      if (at % alignment == 0) next = std::min(at + step, whole_until);  // of whole blocks
      if (next <= at || next > part.end()) next = part.end();            // of a tail
      pieces.push_back({at, part.memory.slice(at - part.offset, next - at)});
      at = next;
    }
  }
  return pieces;
}

std::vector<FilePart> joined(std::span<const FilePart> pieces) {
  std::vector<FilePart> parts;
  for (const FilePart& each : pieces) {
    const bool follows = !parts.empty() && parts.back().end() == each.offset &&
                         parts.back().memory.place == each.memory.place &&
                         parts.back().memory.data + parts.back().memory.bytes == each.memory.data;
    if (follows)
      parts.back().memory.bytes += each.memory.bytes;
    else
      parts.push_back(each);
  }
  return parts;
}

const FilePart* PieceQueue::take() {
  const std::lock_guard guard(lock_);
  return next_ < pieces_.size() ? &pieces_[next_++] : nullptr;
}

std::span<const FilePart> PieceQueue::take_load(Bytes room, Bytes alignment) {
  const std::lock_guard guard(lock_);
  const std::size_t first = next_;
  for (Bytes taken = 0; next_ < pieces_.size(); ++next_) {
    taken += (pieces_[next_].memory.bytes + alignment - 1) / alignment * alignment;
    if (taken > room && next_ > first) break;
  }
  return std::span(pieces_).subspan(first, next_ - first);
}

std::span<const FilePart> PieceQueue::withdraw() {
  const std::lock_guard guard(lock_);
  return std::span(pieces_).subspan(std::exchange(next_, pieces_.size()));
}

void check_parts(std::span<const FilePart> parts) {
  constexpr auto most = static_cast<Bytes>(std::numeric_limits<std::int64_t>::max()) / 2;
  for (const FilePart& part : parts)
    if (part.offset > most || part.memory.bytes > most)
      throw Error(ErrorKind::invalid_input, "offset " + std::to_string(part.offset) + " is beyond any file");
}

}  // namespace waywiser
