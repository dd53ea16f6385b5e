#pragma once

#include "waywiser/collective/messages/message_landing.hpp"
#include "waywiser/kernels/block/ll_packet.hpp"
#include "waywiser/kernels/block/tag.hpp"
#include "waywiser/kernels/block/waiter.hpp"
#include "waywiser/kernels/block/word_access.hpp"

namespace waywiser::messages {

// The pieces of one block's part of a message: where each lies, and the waits for them. A slot is written when its
// previous contents have been taken. `Gpu` is a block of threads (kernels/block/README.md); every thread calls sync()
// equally often. `only`: see Fit.
template <typename Gpu, Fit only>
class MessagePieces {
 public:
  WAYWISER_DEVICE MessagePieces(Gpu& gpu, const MessageArguments& terms, const MessagePart& part, unsigned channel)
      : gpu_(gpu), terms_(terms), part_(part), channel_(channel) {}

 protected:
  using Waiter = block::Waiter<Gpu>;
  static constexpr bool exact = only != Fit::any;

  WAYWISER_DEVICE Kind kind() const { return !exact ? part_.kind : only == Fit::ll ? Kind::ll : Kind::ll128; }
  WAYWISER_DEVICE static unsigned index(Kind kind) { return static_cast<unsigned>(kind); }
  WAYWISER_DEVICE std::uint64_t first() const { return channel_ * part_.piece; }
  WAYWISER_DEVICE std::uint64_t step() const { return part_.blocks * part_.piece; }
  WAYWISER_DEVICE std::uint64_t length(std::uint64_t at) const {
    return part_.bytes - at < part_.piece ? part_.bytes - at : part_.piece;
  }
  // The peer's index in this rank's memory, and this rank's index in the peer's.
  WAYWISER_DEVICE unsigned peer_here() const { return peer_index(terms_.rank, part_.peer); }
  WAYWISER_DEVICE unsigned self_there() const { return peer_index(part_.peer, terms_.rank); }
  // The slot of piece `number`.
  template <typename Slot>
  WAYWISER_DEVICE Slot* slot(unsigned slots, std::uint64_t number) const {
    const std::uint32_t index = channel_ * slots + static_cast<std::uint32_t>(number) % slots;
    return reinterpret_cast<Slot*>(part_.slots + std::uint64_t{index} * part_.slot_bytes);
  }
  WAYWISER_DEVICE std::uint32_t* taken() const { return reinterpret_cast<std::uint32_t*>(part_.taken + channel_); }

  WAYWISER_DEVICE std::uint64_t tag(std::uint64_t number) const { return block::tag_of(number, part_.signature); }

  // Waits until `there()`: until piece `number` has arrived; or, at a sender, for room: no piece has number 0.
  template <typename There>
  WAYWISER_DEVICE void wait(std::uint64_t number, There there) {
    Waiter::wait(gpu_, [&] { return there() ? 0 : part_.peer + 1; }, around(number));
  }
  // The same for all threads of a warp together, until the condition holds for all.
  template <typename There>
  WAYWISER_DEVICE void wait_together(std::uint64_t number, There there) {
    Waiter::wait_together(gpu_, [&] { return there() ? 0 : part_.peer + 1; }, around(number));
  }
  WAYWISER_DEVICE auto around(std::uint64_t number) {
    return [this, number](unsigned, unsigned times, block::Seen seen) {
      return look_around(gpu_, terms_, part_, channel_, number, times, seen);
    };
  }
  WAYWISER_DEVICE WAYWISER_APART static block::Seen look_around(Gpu& gpu, const MessageArguments& terms,
                                                                const MessagePart& part, unsigned channel,
                                                                std::uint64_t number, unsigned times,
                                                                block::Seen seen) {
    std::uint64_t theirs = block::no_description;
    bool packet = false;
    if (number != 0) theirs = MessagePieces(gpu, terms, part, channel).unlike(number, packet);
    if (packet || theirs == block::no_description) theirs = lasting(gpu, theirs, seen);
    return Waiter(gpu, terms.notice, terms.deadline_ns)
        .check(part.peer + 1, times, seen, {part.description, 0}, theirs);
  }

  // The signature of another message in the place of piece `number`, or of one of another kind that arrived before it.
  // This place is polled last: later pieces do not arrive without it.
  WAYWISER_DEVICE std::uint64_t unlike(std::uint64_t number, bool& packet) const {
    std::uint64_t found = block::no_description;
    for (unsigned other = 0; other < kinds; ++other) {
      const auto each = static_cast<Kind>(other);
      if (each == kind()) continue;
      const std::uint64_t next = gpu_.peek(&terms_.state->received[other][part_.peer][channel_]) + 1;
      if (const std::uint64_t come = tag_there(each, next); is_number(come, next)) {
        found = come >> 32;
        packet = each == Kind::ll;
      }
    }
    const std::uint64_t mine =
        kind() == Kind::bulk ? come_word(static_cast<std::uint32_t>(number), false) : tag(number);
    if (const std::uint64_t come = tag_there(kind(), number); is_number(come, number)) {
      found = come == mine ? block::no_description : come >> 32;
      packet = kind() == Kind::ll;
    }
    return found;
  }
  WAYWISER_DEVICE static bool is_number(std::uint64_t tag, std::uint64_t number) {
    return static_cast<std::uint32_t>(tag) == static_cast<std::uint32_t>(number);
  }
  // The number, and above it the signature, of the first piece of a kind that lies there.
  WAYWISER_DEVICE std::uint64_t tag_there(Kind which, std::uint64_t number) const {
    const unsigned me = terms_.rank, slots = which == Kind::ll128 ? ll128_slots : ll_slots;
    const std::byte* piece =
        terms_.landing[me] + terms_.layout.slot(which, peer_here(), channel_, static_cast<unsigned>(number % slots));
    if (which == Kind::ll128) return gpu_.acquire(&reinterpret_cast<const block::Ll128Slot*>(piece)[7].high);
    if (which == Kind::bulk)
      return gpu_.acquire(long_word(me, terms_.layout.come(peer_here(), channel_, number % bulk_slots))) &
             ~(std::uint64_t{1} << 32);
    const block::LlPacket packet = gpu_.load_packet(reinterpret_cast<const block::LlPacket*>(piece));
    return packet.number | std::uint64_t{packet.number ^ packet.mark} << 32;
  }
  // A half-written packet means nothing: only a value that stays for a while counts.
  WAYWISER_DEVICE static std::uint64_t lasting(Gpu& gpu, std::uint64_t theirs, block::Seen& seen) {
    constexpr std::uint64_t while_ns = 2'000'000'000;
    const std::uint64_t now = gpu.nanoseconds();
    if (theirs == block::no_description || seen.wrong_at == 0)
      seen.wrong_at = theirs == block::no_description ? 0 : now;
    return seen.wrong_at != 0 && now - seen.wrong_at >= while_ns ? theirs : block::no_description;
  }

  WAYWISER_DEVICE std::uint64_t* long_word(unsigned rank, std::uint64_t offset) const {
    return reinterpret_cast<std::uint64_t*>(terms_.landing[rank] + offset);
  }
  // The number, whether this and all later pieces are in the destination, and a part of the signature.
  WAYWISER_DEVICE std::uint64_t come_word(std::uint32_t number, bool in_place) const {
    return number | std::uint64_t{in_place} << 32 | part_.signature >> 33 << 33;
  }

  // All threads have read the old value before.
  WAYWISER_DEVICE void keep(std::uint64_t* counter, std::uint64_t number) {
    gpu_.sync();
    gpu_.each_thread([&](unsigned thread) {
      if (thread == 0) gpu_.store(counter, number);
    });
  }
  WAYWISER_DEVICE void say_taken(std::uint64_t number) {
    gpu_.each_thread([&](unsigned thread) {
      if (thread == 0) gpu_.post(taken(), static_cast<std::uint32_t>(number));
    });
  }

  WAYWISER_DEVICE static bool reached(std::uint32_t counter, std::uint32_t number) {
    return static_cast<std::int32_t>(counter - number) >= 0;
  }

  // Waits until the slot's previous contents have been taken. The first poll and the loads of `load` are in flight
  // together.
  template <typename Load>
  WAYWISER_DEVICE auto load_and_wait_for_room(std::uint32_t number, unsigned slots, Load load) {
    const std::uint32_t* taken = this->taken();
    std::uint32_t seen = gpu_.peek(taken);
    const auto loaded = load();
    if (!reached(seen, number - slots)) wait(0, [&] { return reached(seen = gpu_.peek(taken), number - slots); });
    return loaded;
  }

  Gpu& gpu_;
  const MessageArguments& terms_;
  const MessagePart& part_;
  unsigned channel_;
};

}  // namespace waywiser::messages
