#pragma once

#include "waywiser/collective/messages/message_pieces.hpp"

namespace waywiser::messages {

// A bulk message. Once its sender sees the destination, it stores the rest of its part there, as one last piece: the
// receiver has begun, so the old contents of its array are no longer needed.
template <typename Gpu, Fit only>
class BulkPieces : public MessagePieces<Gpu, only> {
 public:
  WAYWISER_DEVICE BulkPieces(Gpu& gpu, const MessageArguments& terms, const MessagePart& part, bool places,
                             unsigned channel)
      : MessagePieces<Gpu, only>(gpu, terms, part, channel), places_(places) {}

 protected:
  using Pieces = MessagePieces<Gpu, only>;
  using Pieces::channel_, Pieces::exact, Pieces::gpu_, Pieces::part_, Pieces::terms_;
  using Pieces::come_word, Pieces::length, Pieces::load_and_wait_for_room, Pieces::long_word, Pieces::peer_here;
  using Pieces::self_there, Pieces::step, Pieces::tag, Pieces::wait;
  static constexpr unsigned batch = 8;

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
    if (there == nullptr) fill(this->template slot<Vector16>(bulk_slots, number), part_.data + at, length(at));
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
    empty(part_.data + at, this->template slot<std::byte>(bulk_slots, number), length(at));
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

  bool places_;
};

}  // namespace waywiser::messages
