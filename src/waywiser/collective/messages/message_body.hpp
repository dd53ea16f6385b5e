#pragma once

#include "waywiser/collective/messages/message_landing.hpp"
#include "waywiser/kernels/block/ll_packet.hpp"
#include "waywiser/kernels/block/tag.hpp"
#include "waywiser/kernels/block/waiter.hpp"
#include "waywiser/kernels/block/word_access.hpp"

namespace waywiser::messages {

// One block's part of a message. A slot is written when its previous contents have been taken. Once the sender sees the
// destination of a bulk message, it stores the rest of its part there, as one last piece: the receiver has begun, so
// the old contents of its array are no longer needed. `Gpu` is a block of threads (kernels/block/README.md); every
// thread calls sync() equally often. `only`: see Fit.
template <typename Gpu, Fit only>
class MessageBody {
 public:
  WAYWISER_DEVICE MessageBody(Gpu& gpu, const MessageArguments& terms, const MessagePart& part, bool places,
                              unsigned channel)
      : gpu_(gpu), terms_(terms), part_(part), places_(places), channel_(channel) {}

  WAYWISER_DEVICE void send() {
    std::uint64_t* counter = &terms_.state->sent[index(kind())][part_.peer][channel_];
    std::uint64_t number = gpu_.peek(counter);
    const std::uint64_t first_number = number + 1;
    bool whole = false;
    for (std::uint64_t at = first(); at < part_.bytes && !whole; at += step()) {
      ++number;
      if (kind() == Kind::ll)
        send_ll(at, number);
      else if (kind() == Kind::ll128)
        send_ll128(at, number);
      else
        whole = send_bulk(at, number, first_number);
    }
    keep(counter, number);
  }

  WAYWISER_DEVICE void receive() {
    std::uint64_t* counter = &terms_.state->received[index(kind())][part_.peer][channel_];
    std::uint64_t number = gpu_.peek(counter);
    bool whole = false;
    if (kind() == Kind::bulk) tell_place(number + 1);
    for (std::uint64_t at = first(); at < part_.bytes && !whole; at += step()) {
      if (kind() == Kind::bulk) {
        whole = take_bulk(at, ++number);
        gpu_.sync();
        say_taken(number);
        continue;
      }
      if (at != first()) gpu_.sync();
      say_taken(number);  // overlaps with this piece, and no kernel ends with it
      ++number;
      if (kind() == Kind::ll)
        take_ll(at, number);
      else
        take_ll128(at, number);
    }
    keep(counter, number);
  }

 private:
  using Waiter = block::Waiter<Gpu>;
  static constexpr unsigned batch = 8;
  static constexpr bool exact = only != Fit::any;
  static constexpr unsigned ll128_at_once = only == Fit::ll128 ? 1 : only == Fit::long_ll128 ? 4 : 2;  // of a thread

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
    if (number != 0) theirs = MessageBody(gpu, terms, part, false, channel).unlike(number, packet);
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

  WAYWISER_DEVICE void send_ll(std::uint64_t at, std::uint64_t piece) {
    const std::uint64_t bytes = length(at), units = (bytes + 7) / 8;
    const auto number = static_cast<std::uint32_t>(piece);
    auto* to = slot<block::LlPacket>(ll_slots, number);
    gpu_.each_thread([&](unsigned thread) {
      for (std::uint64_t unit = thread; unit < units; unit += gpu_.threads()) {
        const auto load = [&] { return block::load_word<block::Word8, exact>(part_.data + at, bytes, unit); };
        gpu_.store_packet(to + unit, load_and_wait_for_room(number, ll_slots, load), tag(piece));
      }
    });
  }

  // One lane of a warp polls first: then the others need one poll.
  WAYWISER_DEVICE void take_ll(std::uint64_t at, std::uint64_t piece) {
    const std::uint64_t bytes = length(at), units = (bytes + 7) / 8;
    const auto* from = slot<block::LlPacket>(ll_slots, piece);
    const auto take = [&](std::uint64_t unit) {
      block::LlPacket packet{};
      wait(piece, [&] {
        packet = gpu_.load_packet(from + unit);
        return packet.is_of(tag(piece));
      });
      block::store_word<exact>(part_.data + at, bytes, unit, block::Word8{{packet.low, packet.high}});
    };
    for (std::uint64_t begin = 0; begin < units; begin += gpu_.threads())
      gpu_.each_thread([&](unsigned thread) {
        const bool active = begin + thread < units;
        if (active && gpu_.leads(thread)) take(begin + thread);
        gpu_.join_warp();
        if (active && !gpu_.leads(thread)) take(begin + thread);
      });
  }

  // A thread's lane of some pairs of lines: calls f(lane, pairs, number of pairs in the piece) for each tile of a
  // piece.
  template <typename Function>
  WAYWISER_DEVICE void each_tile(std::uint64_t bytes, Function f) {
    const auto pairs = static_cast<std::uint32_t>(block::pairs_for(bytes));
    const std::uint32_t step = gpu_.threads() / block::lanes_of_pair;
    for (std::uint32_t first = 0; first < pairs; first += step * ll128_at_once)
      gpu_.each_thread([&](unsigned thread) {
        std::uint32_t mine[ll128_at_once];
        WAYWISER_UNROLL
        for (unsigned i = 0; i < ll128_at_once; ++i) mine[i] = first + thread / block::lanes_of_pair + i * step;
        f(thread % block::lanes_of_pair, mine, pairs);
      });
  }
  WAYWISER_DEVICE static std::uint32_t word_of(unsigned lane, std::uint32_t pair) {
    return pair * block::words_of_pair + lane;
  }
  WAYWISER_DEVICE static bool has_word(unsigned lane, std::uint32_t pair, std::uint64_t bytes) {
    return lane < block::words_of_pair && word_of(lane, pair) < (bytes + 15) / 16;
  }

  // All loads are in flight before the first store.
  WAYWISER_DEVICE void send_ll128(std::uint64_t at, std::uint64_t number) {
    const std::uint64_t bytes = length(at);
    auto* to = slot<block::Ll128Slot>(ll128_slots, number);
    each_tile(bytes, [&](unsigned lane, const std::uint32_t (&pairs)[ll128_at_once], std::uint32_t end) {
      Vector16 words[ll128_at_once] = {};
      const auto load = [&] {
        WAYWISER_UNROLL
        for (unsigned i = 0; i < ll128_at_once; ++i)
          if (has_word(lane, pairs[i], bytes))
            words[i] = block::load_word<Vector16, exact>(part_.data + at, bytes, word_of(lane, pairs[i]));
        return true;
      };
      load_and_wait_for_room(static_cast<std::uint32_t>(number), ll128_slots, load);
      gpu_.join_warp();
      WAYWISER_UNROLL
      for (unsigned i = 0; i < ll128_at_once; ++i)
        gpu_.store_line(to + std::size_t{pairs[i]} * block::lanes_of_pair + lane, lane,
                        gpu_.line_word(words[i], lane, tag(number)), pairs[i] < end);
    });
  }

  WAYWISER_DEVICE void take_ll128(std::uint64_t at, std::uint64_t number) {
    const std::uint64_t bytes = length(at);
    const auto* from = slot<block::Ll128Slot>(ll128_slots, number);
    each_tile(bytes, [&](unsigned lane, const std::uint32_t (&pairs)[ll128_at_once], std::uint32_t end) {
      block::Ll128Look looks[ll128_at_once];
      wait_together(number, [&] {
        WAYWISER_UNROLL
        for (unsigned i = 0; i < ll128_at_once; ++i)
          if (pairs[i] < end)
            looks[i] = gpu_.look_at_line(from + std::size_t{pairs[i]} * block::lanes_of_pair + lane, lane, tag(number));
        bool there = true;  // compared when all polls are in flight
        WAYWISER_UNROLL
        for (unsigned i = 0; i < ll128_at_once; ++i)
          there = there && (pairs[i] >= end || gpu_.is_there(looks[i], lane, tag(number)));
        return there;
      });
      WAYWISER_UNROLL
      for (unsigned i = 0; i < ll128_at_once; ++i) {
        const Vector16 word = gpu_.word_in_line(looks[i], lane);
        if (has_word(lane, pairs[i], bytes))
          block::store_word<exact>(part_.data + at, bytes, word_of(lane, pairs[i]), word);
      }
    });
  }

  WAYWISER_DEVICE std::uint64_t* long_word(unsigned rank, std::uint64_t offset) const {
    return reinterpret_cast<std::uint64_t*>(terms_.landing[rank] + offset);
  }
  WAYWISER_DEVICE const block::Exposed& exposed(unsigned slot, unsigned rank) const {
    return terms_.exposed[slot * block::max_ranks + rank];
  }

  // Looked up on the GPU, since a graph may be older than the windows.
  WAYWISER_DEVICE std::uint32_t own_place() const {
    return block::OutputPlace::in(exposed(part_.slot, terms_.rank), part_.slot, part_.data, part_.bytes).word();
  }
  WAYWISER_DEVICE void tell_place(std::uint64_t number) {
    if (!places_) return;
    gpu_.each_thread([&](unsigned thread) {
      if (thread != 0) return;
      gpu_.store(long_word(part_.peer, terms_.layout.place_tag(self_there(), channel_)), tag(number));
      gpu_.release(long_word(part_.peer, terms_.layout.place(self_there(), channel_)),
                   static_cast<std::uint32_t>(number) | std::uint64_t{own_place()} << 32);
    });
  }

  // The receiver's array, if it is exposed and the receiver has already come for this very message; else nullptr.
  WAYWISER_DEVICE std::byte* place_of(std::uint64_t number) const {
    if (!places_) return nullptr;
    const std::uint64_t told = gpu_.acquire(long_word(terms_.rank, terms_.layout.place(peer_here(), channel_)));
    const auto place = block::OutputPlace::of(static_cast<std::uint32_t>(told >> 32));
    const block::Exposed memory = exposed(place.slot, part_.peer);
    const bool known = static_cast<std::uint32_t>(told) == static_cast<std::uint32_t>(number) &&
                       memory.holds(place.offset, part_.bytes) &&
                       gpu_.peek(long_word(terms_.rank, terms_.layout.place_tag(peer_here(), channel_))) == tag(number);
    return known ? memory.data + place.offset : nullptr;
  }

  // True: with this piece the block has sent its whole part.
  WAYWISER_DEVICE bool send_bulk(std::uint64_t at, std::uint64_t piece, std::uint64_t first_number) {
    const auto number = static_cast<std::uint32_t>(piece);
    gpu_.each_thread([&](unsigned thread) {
      if (thread != 0) return;
      gpu_.address(0) = load_and_wait_for_room(number, bulk_slots, [&] { return place_of(first_number); });
    });
    gpu_.sync();
    std::byte* there = gpu_.address(0);
    if (there == nullptr) fill(slot<Vector16>(bulk_slots, number), part_.data + at, length(at));
    for (; there != nullptr && at < part_.bytes; at += step())
      fill(reinterpret_cast<Vector16*>(there + at), part_.data + at, length(at));
    gpu_.sync();
    gpu_.each_thread([&](unsigned thread) {
      if (thread == 0)
        gpu_.release(long_word(part_.peer, terms_.layout.come(self_there(), channel_, number % bulk_slots)),
                     come_word(number, there != nullptr));
    });
    return there != nullptr;
  }

  // The number, whether this and all later pieces are in the destination, and a part of the signature.
  WAYWISER_DEVICE std::uint64_t come_word(std::uint32_t number, bool in_place) const {
    return number | std::uint64_t{in_place} << 32 | part_.signature >> 33 << 33;
  }

  // True: this block's part of the message has arrived.
  WAYWISER_DEVICE bool take_bulk(std::uint64_t at, std::uint64_t piece) {
    const auto number = static_cast<std::uint32_t>(piece);
    const std::uint64_t* come = long_word(terms_.rank, terms_.layout.come(peer_here(), channel_, number % bulk_slots));
    gpu_.each_thread([&](unsigned thread) {
      if (thread != 0) return;
      std::uint64_t seen = 0;
      wait(piece, [&] {
        seen = gpu_.acquire(come);
        return seen == come_word(number, false) || seen == come_word(number, true);
      });
      gpu_.address(0) = (seen >> 32 & 1) != 0 ? part_.data : nullptr;
    });
    gpu_.sync();
    if (gpu_.address(0) != nullptr) return true;
    empty(part_.data + at, slot<std::byte>(bulk_slots, number), length(at));
    return false;
  }

  // Copies user memory into a slot. The loads of a batch are in flight together.
  WAYWISER_DEVICE void fill(Vector16* to, const std::byte* from, std::uint64_t bytes) {
    each_batch(bytes, [&](std::uint64_t index, std::uint64_t end) {
      Vector16 words[batch] = {};
      WAYWISER_UNROLL
      for (unsigned i = 0; i < batch; ++i)
        if (index + i * gpu_.threads() < end)
          words[i] = block::load_word<Vector16, exact>(from, bytes, index + i * gpu_.threads());
      WAYWISER_UNROLL
      for (unsigned i = 0; i < batch; ++i)
        if (index + i * gpu_.threads() < end) gpu_.store_far(to + index + i * gpu_.threads(), words[i]);
    });
  }
  // Copies a slot into user memory.
  WAYWISER_DEVICE void empty(std::byte* to, const std::byte* from, std::uint64_t bytes) {
    each_batch(bytes, [&](std::uint64_t index, std::uint64_t end) {
      Vector16 words[batch] = {};
      WAYWISER_UNROLL
      for (unsigned i = 0; i < batch; ++i)
        if (index + i * gpu_.threads() < end)
          words[i] = reinterpret_cast<const Vector16*>(from)[index + i * gpu_.threads()];
      WAYWISER_UNROLL
      for (unsigned i = 0; i < batch; ++i)
        if (index + i * gpu_.threads() < end) block::store_word<exact>(to, bytes, index + i * gpu_.threads(), words[i]);
    });
  }
  template <typename Function>
  WAYWISER_DEVICE void each_batch(std::uint64_t bytes, Function f) {
    const std::uint64_t end = (bytes + sizeof(Vector16) - 1) / sizeof(Vector16);
    for (std::uint64_t begin = 0; begin < end; begin += std::uint64_t{gpu_.threads()} * batch)
      gpu_.each_thread([&](unsigned thread) { f(begin + thread, end); });
  }

  Gpu& gpu_;
  const MessageArguments& terms_;
  const MessagePart& part_;
  bool places_;
  unsigned channel_;
};

}  // namespace waywiser::messages
