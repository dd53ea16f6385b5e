#pragma once

#include "waywiser/collective/messages/bulk_pieces.hpp"
#include "waywiser/kernels/block/lines.hpp"

namespace waywiser::messages {

// One block's part of a message.
template <typename Gpu, Fit only>
class MessageBody : BulkPieces<Gpu, only> {
 public:
  using BulkPieces<Gpu, only>::BulkPieces;

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
  using Pieces = MessagePieces<Gpu, only>;
  using Pieces::channel_, Pieces::exact, Pieces::gpu_, Pieces::part_, Pieces::terms_;
  using Pieces::first, Pieces::index, Pieces::keep, Pieces::kind, Pieces::length, Pieces::load_and_wait_for_room;
  using Pieces::say_taken, Pieces::step, Pieces::tag, Pieces::wait, Pieces::wait_together;
  using BulkPieces<Gpu, only>::send_bulk, BulkPieces<Gpu, only>::take_bulk, BulkPieces<Gpu, only>::tell_place;
  static constexpr unsigned ll128_at_once = only == Fit::ll128 ? 1 : only == Fit::long_ll128 ? 4 : 2;  // of a thread

  WAYWISER_DEVICE void send_ll(std::uint64_t at, std::uint64_t piece) {
    const std::uint64_t bytes = length(at), units = (bytes + 7) / 8;
    const auto number = static_cast<std::uint32_t>(piece);
    auto* to = this->template slot<block::LlPacket>(ll_slots, number);
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
    const auto* from = this->template slot<block::LlPacket>(ll_slots, piece);
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

  WAYWISER_DEVICE static std::uint32_t word_of(unsigned lane, std::uint32_t pair) {
    return pair * block::words_of_pair + lane;
  }
  WAYWISER_DEVICE static bool has_word(unsigned lane, std::uint32_t pair, std::uint64_t bytes) {
    return lane < block::words_of_pair && word_of(lane, pair) < (bytes + 15) / 16;
  }

  WAYWISER_DEVICE void send_ll128(std::uint64_t at, std::uint64_t number) {
    const std::uint64_t bytes = length(at);
    block::send_lines<ll128_at_once>(
        gpu_, bytes, this->template slot<block::Ll128Slot>(ll128_slots, number), [&] { return this->tag(number); },
        [&](Vector16& word, std::uint32_t pair, unsigned lane, std::uint32_t) {
          if (has_word(lane, pair, bytes))
            word = block::load_word<Vector16, exact>(part_.data + at, bytes, word_of(lane, pair));
        },
        [&](auto loads) { this->load_and_wait_for_room(static_cast<std::uint32_t>(number), ll128_slots, loads); });
  }

  WAYWISER_DEVICE void take_ll128(std::uint64_t at, std::uint64_t number) {
    const std::uint64_t bytes = length(at);
    block::take_lines<ll128_at_once>(
        gpu_, bytes, this->template slot<block::Ll128Slot>(ll128_slots, number), [&] { return this->tag(number); },
        [&](auto have_come) { this->wait_together(number, have_come); },
        [&](const Vector16& word, std::uint32_t pair, unsigned lane, std::uint32_t) {
          if (has_word(lane, pair, bytes)) block::store_word<exact>(part_.data + at, bytes, word_of(lane, pair), word);
        });
  }
};

}  // namespace waywiser::messages
