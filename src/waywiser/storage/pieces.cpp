#include "waywiser/storage/pieces.hpp"

#include <algorithm>
#include <limits>

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

void check_parts(std::span<const FilePart> parts) {
  constexpr auto most = static_cast<Bytes>(std::numeric_limits<std::int64_t>::max()) / 2;
  for (const FilePart& part : parts)
    if (part.offset > most || part.memory.bytes > most)
      throw Error(ErrorKind::invalid_input, "offset " + std::to_string(part.offset) + " is beyond any file");
}

}  // namespace waywiser
