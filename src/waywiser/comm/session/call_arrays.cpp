#include "waywiser/comm/session/call_arrays.hpp"

#include <algorithm>
#include <string>

#include "waywiser/base/error.hpp"

namespace waywiser {
namespace {

enum class Sharing {
  none,
  same,            // both are the same array
  same_if_copied,  // the same, where the call reads a copy
  own_block,       // the shorter array is this rank's block of the longer one
};

Sharing sharing_of(CallKind kind) {
  switch (kind) {
    case CallKind::broadcast:
    case CallKind::reduce:
    case CallKind::all_reduce:
    case CallKind::scan:
    case CallKind::exscan: return Sharing::same;
    case CallKind::sendrecv:
    case CallKind::all_to_all:
    case CallKind::all_to_all_v: return Sharing::same_if_copied;
    case CallKind::all_gather:
    case CallKind::reduce_scatter:
    case CallKind::gather:
    case CallKind::scatter: return Sharing::own_block;
    default: return Sharing::none;
  }
}

const char* words(Sharing sharing, bool copies) {
  switch (sharing) {
    case Sharing::same: return "they may be the same, or apart";
    case Sharing::same_if_copied:
      return copies ? words(Sharing::same, copies) : "in this mode and this memory they must be apart";
    case Sharing::own_block: return "the shorter one may be this rank's block of the longer one, or apart";
    default: return "they must be apart";
  }
}

bool reaches_farther(const PartUse& a, const PartUse& b) {
  return a.bytes.data + a.bytes.bytes > b.bytes.data + b.bytes.bytes;
}

}  // namespace

void refuse_overlap(CallKind kind, bool copies) {
  throw Error(ErrorKind::invalid_input,
              std::string(name(kind)) + ": the two arrays overlap; " + words(sharing_of(kind), copies));
}

bool may_share(CallKind kind, const CallArrays& arrays) noexcept {
  const auto& [read, written, own_block, copies] = arrays;
  const Sharing sharing = sharing_of(kind);
  if (sharing == Sharing::none || (sharing == Sharing::same_if_copied && !copies)) return false;
  if (sharing != Sharing::own_block) return read.data == written.data && read.bytes == written.bytes;
  const bool reads_longer = read.bytes > written.bytes;
  const ConstRegion &longer = reads_longer ? read : written, &shorter = reads_longer ? written : read;
  return own_block && shorter.data == longer.data + *own_block;
}

// By their beginnings: each is compared with the earlier ones that reach farthest.
std::optional<std::pair<PartUse, PartUse>> find_overlap(std::span<PartUse> uses) {
  const auto order = [](const PartUse& a, const PartUse& b) {
    return a.bytes.data != b.bytes.data ? std::less<>()(a.bytes.data, b.bytes.data)
                                        : std::pair(a.part, a.written) < std::pair(b.part, b.written);
  };
  std::ranges::sort(uses, order);
  const PartUse *read = nullptr, *written = nullptr;
  for (const PartUse& each : uses) {
    if (each.bytes.bytes == 0) continue;
    for (const PartUse* before : {written, each.written ? read : nullptr})
      if (before != nullptr && share_memory(before->bytes, each.bytes))
        return before->written ? std::pair(*before, each) : std::pair(each, *before);
    const PartUse*& farthest = each.written ? written : read;
    if (farthest == nullptr || reaches_farther(each, *farthest)) farthest = &each;
  }
  return {};
}

void check_exchange(std::span<PartUse> uses, const std::function<int(std::size_t part)>& peer) {
  const auto found = find_overlap(uses);
  if (!found) return;
  const auto told = [&](const PartUse& use) {
    return (use.written ? "the array taken from rank " : "the array given to rank ") + std::to_string(peer(use.part));
  };
  throw Error(ErrorKind::invalid_input,
              "neighbor_exchange: " + told(found->first) + " overlaps " + told(found->second));
}

}  // namespace waywiser
