#pragma once

#include "waywiser/heap/device/lines.hpp"
#include "waywiser/heap/device/one_sided.hpp"
#include "waywiser/heap/device/packets.hpp"

namespace waywiser::one_sided {

// Where the parts of an inbox begin, counted from a multiple of 128: a signal, packets, lines. Each has bytes of its
// own, so that data of one protocol are never taken for the flags of another.
struct InboxParts {
  std::uint64_t packets = 128, lines = 0, end = 0;

  WAYWISER_DEVICE constexpr InboxParts(const Protocols& protocols, std::uint64_t most) {
    const std::uint64_t short_ones = most < protocols.packets ? most : protocols.packets;
    const std::uint64_t longer_ones = most < protocols.lines ? most : protocols.lines;
    lines = packets + (packets_of(short_ones) * sizeof(block::LlPacket) + 127) / 128 * 128;
    end = lines + line_bytes_of(longer_ones);
  }
};

// The bytes of the heap that an inbox takes.
WAYWISER_DEVICE constexpr std::uint64_t inbox_bytes(const Protocols& protocols, std::uint64_t most) {
  return InboxParts(protocols, most).end + 127;
}

// Elements that come with the news of their arrival; their bytes decide how: few in packets, more in lines, above by
// stores and a signal. The receiver's wait_message() has the same inbox, count, number and scope: both ranks make the
// same choice.
template <Scope scope, typename Gpu>
class Messages {
 public:
  WAYWISER_DEVICE Messages(const Transfers<Gpu>& ranks, const Inbox& inbox, std::uint64_t bytes, int rank)
      : ranks_(ranks), parts_(ranks.terms().protocols, inbox.most), start_((inbox.offset + 127) / 128 * 128) {
    if (bytes > inbox.most) ranks.stop_too_long(inbox.offset, bytes, rank);
  }

  WAYWISER_DEVICE Protocol protocol(std::uint64_t bytes) const {
    const Protocols& most = ranks_.terms().protocols;
    if (bytes != 0 && bytes <= most.packets) return Protocol::packets;
    if constexpr (scope != Scope::thread)
      if (bytes != 0 && bytes <= most.lines && ranks_.gpu().has_lines(scope)) return Protocol::lines;
    return Protocol::stores;
  }
  WAYWISER_DEVICE std::uint64_t* signal() const { return ranks_.template at<std::uint64_t>(start_); }
  WAYWISER_DEVICE block::LlPacket* packets() const {
    return ranks_.template at<block::LlPacket>(start_ + parts_.packets);
  }
  WAYWISER_DEVICE block::Ll128Slot* lines() const {
    return ranks_.template at<block::Ll128Slot>(start_ + parts_.lines);
  }

 private:
  const Transfers<Gpu>& ranks_;
  const InboxParts parts_;
  const std::uint64_t start_;
};

// Puts elements of this rank into `destination` at a rank; wait_message() there returns when they have come. The
// number, from 1, differs from all earlier ones of the inbox, which is for this sender. Before the next put into it the
// receiver must have waited for this one. Until then `destination` there may change at any time.
template <Scope scope = Scope::thread, typename Gpu, typename T>
WAYWISER_DEVICE void put_message(const Transfers<Gpu>& ranks, const Inbox& inbox, T* destination, const T* source,
                                 std::uint64_t count, std::uint64_t number, int rank) {
  const Messages<scope, Gpu> to(ranks, inbox, count * sizeof(T), rank);
  const Protocol protocol = to.protocol(count * sizeof(T));
  if (protocol == Protocol::packets) return put_packets<scope>(ranks, to.packets(), source, count, number, rank);
  if constexpr (scope != Scope::thread)
    if (protocol == Protocol::lines) return put_lines<scope>(ranks, to.lines(), source, count, number, rank);
  ranks.template put_with_signal<scope>(destination, source, count, to.signal(), number, SignalOp::set, rank);
}

// Waits until the elements are in `destination`, in this rank's heap. `from`: the rank that puts them, for the error.
template <Scope scope = Scope::thread, typename Gpu, typename T>
WAYWISER_DEVICE void wait_message(const OneSided<Gpu>& ranks, const Inbox& inbox, T* destination, std::uint64_t count,
                                  std::uint64_t number, int from = any_rank) {
  const Messages<scope, Gpu> by(ranks, inbox, count * sizeof(T), ranks.rank());
  const Protocol protocol = by.protocol(count * sizeof(T));
  if (protocol == Protocol::packets) return wait_packets<scope>(ranks, destination, by.packets(), count, number, from);
  if constexpr (scope != Scope::thread)
    if (protocol == Protocol::lines) return wait_lines<scope>(ranks, destination, by.lines(), count, number, from);
  ranks.template wait_until<scope>(by.signal(), Comparison::eq, number, from);
}

}  // namespace waywiser::one_sided
