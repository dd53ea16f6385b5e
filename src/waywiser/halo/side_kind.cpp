#include "waywiser/halo/side_kind.hpp"

#include <algorithm>
#include <bit>

#include "waywiser/base/units.hpp"

namespace waywiser {
namespace {

constexpr unsigned magnitude_bits = 6, face_bits = 4;

std::string in_brackets(const std::vector<int>& numbers) {
  std::string text;
  for (const int each : numbers) text += (text.empty() ? "(" : ", ") + std::to_string(each);
  return text + ")";
}

}  // namespace

std::uint64_t key_of(const HaloSideKind& kind) {
  std::uint64_t key = 1;  // the mark above all bits
  const auto append = [&](std::uint64_t value, unsigned bits) { key = key << bits | value; };
  append(kind.same_machine ? 1 : 0, 1);
  append(kind.contiguous ? 1 : 0, 1);
  append(kind.magnitude, magnitude_bits);
  append(kind.face.size(), face_bits);
  for (const bool each : kind.face) append(each ? 1 : 0, 1);
  append(0, face_bits - static_cast<unsigned>(kind.face.size()));
  return key;
}

HaloSideKind kind_of(std::uint64_t key) {
  const auto bits = [&](unsigned first, unsigned count) { return key >> first & ((std::uint64_t{1} << count) - 1); };
  HaloSideKind kind;
  for (std::uint64_t i = 0; i < std::min<std::uint64_t>(bits(face_bits, face_bits), face_bits); ++i)
    kind.face.push_back(bits(face_bits - 1 - static_cast<unsigned>(i), 1) == 1);
  kind.magnitude = static_cast<unsigned>(bits(2 * face_bits, magnitude_bits));
  kind.contiguous = bits(2 * face_bits + magnitude_bits, 1) == 1;
  kind.same_machine = bits(2 * face_bits + magnitude_bits + 1, 1) == 1;
  return kind;
}

std::string words_of(const std::vector<int>& face) { return in_brackets(face); }

std::string words_of(const HaloSideKind& kind) {
  const std::string first = format_bytes(Bytes{1} << kind.magnitude),
                    last = format_bytes(Bytes{1} << std::min(kind.magnitude + 1, 63u));
  std::string text = "sides";
  if (!kind.face.empty()) text = "sides like " + in_brackets({kind.face.begin(), kind.face.end()});
  text += " of " + first + " to " + last + " bytes" + (kind.contiguous ? ", contiguous" : "");
  return text + (kind.same_machine ? "" : ", to other machines");
}

std::vector<std::uint64_t> kinds_of_sides(const HaloPartition& partition, const HaloBoundary& boundary,
                                          const std::vector<bool>& same_machine) {
  std::vector<std::uint64_t> bytes(partition.gives.size(), 0), kinds;
  std::vector<bool> contiguous(partition.gives.size(), true);
  for (const BoundaryPart& each : boundary.gives) {
    bytes[each.side] += each.part.count;
    if (each.part.apart) contiguous[each.side] = false;
  }
  for (std::size_t side = 0; side < bytes.size(); ++side) {
    const HaloSide& of = partition.gives[side];
    HaloSideKind kind;
    std::ranges::transform(of.face, std::back_inserter(kind.face), [](int each) { return each != 0; });
    kind.magnitude = static_cast<unsigned>(std::bit_width(bytes[side])) - 1;
    kind.contiguous = contiguous[side];
    kind.same_machine = same_machine[static_cast<std::size_t>(of.peer)];
    kinds.push_back(bytes[side] == 0 || of.peer == partition.rank ? 0 : key_of(kind));
  }
  return kinds;
}

}  // namespace waywiser
