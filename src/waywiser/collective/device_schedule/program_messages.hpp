#pragma once

#include "waywiser/collective/device_schedule/program_start.hpp"
#include "waywiser/collective/device_schedule/unit_moves.hpp"
#include "waywiser/kernels/block/lines.hpp"

namespace waywiser::program {

// One block's pieces of messages and copies, by every protocol.
template <typename Gpu>
class ProgramMessages : public ProgramStart<Gpu> {
 protected:
  using Start = ProgramStart<Gpu>;
  using Start::each_piece, Start::first_piece, Start::flag, Start::gpu_, Start::slot, Start::tag, Start::terms_,
      Start::view_of_slot, Start::wait, Start::wait_for_piece, Start::wait_for_start, Start::wait_together;
  using Start::Start, Start::settle;
  using typename Start::Piece;

  WAYWISER_DEVICE void carry_out(const Instruction& each) {
    const std::uint32_t mine = first_piece(each);
    if (each.act == Act::signal) return signal(each, mine);
    if (each.direct && mine < each.pieces) wait_for_start(each.peer);
    each_piece(each, [&](const Piece& piece) {
      if (each.act == Act::copy)
        copy(each, piece);
      else if (each.act == Act::take)
        each.ll ? take_ll(each, piece) : each.ll128 ? take_ll128(each, piece) : take_bulk(each, piece);
      else
        each.ll ? send_ll(each, piece) : each.ll128 ? send_ll128(each, piece) : send_bulk(each, piece);
    });
  }

  // Calls f(offset in the block) for each unit of a piece, by all threads.
  template <typename Unit, typename Function>
  WAYWISER_DEVICE void each_unit(const Piece& piece, Function f) {
    gpu_.each_thread([&](unsigned thread) {
      for (std::uint64_t at = thread * sizeof(Unit); at < piece.bytes; at += gpu_.threads() * sizeof(Unit))
        f(piece.begin + at);
    });
  }

  WAYWISER_DEVICE WAYWISER_APART void copy(const Instruction& each, const Piece& piece) {
    if (!each.reduces) return move_bytes(gpu_, each.from, each.to, piece.begin, piece.bytes, each.word);
    each_unit<Vector16>(
        piece, [&](std::uint64_t at) { deliver(each, at, load_unit<Vector16>(each.from, at, each.bytes, each.word)); });
  }

  template <typename Unit>
  WAYWISER_DEVICE void deliver(const Instruction& each, std::uint64_t at, Unit unit) {
    if (each.reduces) unit = reduced<Gpu>(each, load_unit<Unit>(each.to, at, each.bytes, each.word), unit);
    store_unit(each.to, at, each.bytes, each.word, unit);
  }

  // By LL. `plain`: of contiguous blocks that are aligned for words of eight bytes, and without a reduction.
  template <bool plain>
  WAYWISER_DEVICE void send_packets(const Instruction& each, const Piece& piece) {
    const Plain from{each.from.data};
    const std::uint64_t bytes = each.bytes;
    auto* packets = reinterpret_cast<block::LlPacket*>(slot(each));
    const auto load = [&](std::uint64_t at) {
      if constexpr (plain)
        return load_unit<block::Word8>(from, at, bytes);
      else
        return load_unit<block::Word8>(each.from, at, bytes, each.word);
    };
    gpu_.each_thread([&](unsigned thread) {
      const std::uint64_t step = gpu_.threads() * sizeof(block::Word8), end = piece.begin + piece.bytes;
      for (std::uint64_t at = piece.begin + thread * sizeof(block::Word8);; at += 2 * step) {
        block::Word8 words[2] = {};
        WAYWISER_UNROLL
        for (unsigned i = 0; i < 2; ++i)
          if (at + i * step < end) words[i] = load(at + i * step);
        settle();
        WAYWISER_UNROLL
        for (unsigned i = 0; i < 2; ++i)
          if (at + i * step < end) gpu_.store_packet(packets + (at + i * step) / 8, words[i], tag());
        if (at + 2 * step >= end) return;
      }
    });
  }
  template <bool plain>
  WAYWISER_DEVICE void take_packets(const Instruction& each, const Piece& piece) {
    const Plain to{each.to.data};
    const std::uint64_t bytes = each.bytes;
    const auto* packets = reinterpret_cast<const block::LlPacket*>(slot(each));
    const auto keep = [&](std::uint64_t at, const block::LlPacket& packet) {
      if constexpr (plain)
        store_unit(to, at, bytes, block::Word8{{packet.low, packet.high}});
      else
        deliver(each, at, block::Word8{{packet.low, packet.high}});
    };
    gpu_.each_thread([&](unsigned thread) {
      const std::uint64_t step = gpu_.threads() * sizeof(block::Word8), end = piece.begin + piece.bytes;
      for (std::uint64_t at = piece.begin + thread * sizeof(block::Word8); at < end; at += 2 * step) {
        const std::uint64_t next = at + step < end ? at + step : at;
        block::LlPacket one, two;
        wait(0, [&] {
          one = gpu_.load_packet(packets + at / 8);
          two = gpu_.load_packet(packets + next / 8);
          return one.is_of(tag()) && two.is_of(tag()) ? 0u : each.peer + 1;
        });
        keep(at, one);
        if (next != at) keep(next, two);
      }
    });
  }
  WAYWISER_DEVICE WAYWISER_APART void send_ll(const Instruction& each, const Piece& piece) {
    send_packets<false>(each, piece);
  }
  WAYWISER_DEVICE WAYWISER_APART void take_ll(const Instruction& each, const Piece& piece) {
    take_packets<false>(each, piece);
  }

  static constexpr unsigned lines_at_once = 4;  // of a thread: all its loads are under way before its first store

  // Pieces are whole pairs of lines, but for the last one.
  WAYWISER_DEVICE block::Ll128Slot* lines_of(const Instruction& each, const Piece& piece) const {
    return reinterpret_cast<block::Ll128Slot*>(slot(each)) +
           piece.begin / block::data_bytes_of_pair * block::lanes_of_pair;
  }
  // The place of a lane's word in the block; past its end: there is none.
  WAYWISER_DEVICE static std::uint64_t place_of_word(const Piece& piece, std::uint32_t pair, unsigned lane) {
    return lane < block::words_of_pair ? piece.begin + pair * block::data_bytes_of_pair + lane * sizeof(Vector16)
                                       : ~std::uint64_t{0};
  }

  WAYWISER_DEVICE void send_ll128(const Instruction& each, const Piece& piece) {
    with_layout(each.from, each.bytes, each.word,
                [&]<typename Word>(const auto& from) { send_lines_apart<Word>(each, piece, from); });
  }
  WAYWISER_DEVICE void take_ll128(const Instruction& each, const Piece& piece) {
    with_layout(each.to, each.bytes, each.word,
                [&]<typename Word>(const auto& to) { take_lines_apart<Word>(each, piece, to); });
  }

  template <typename Word, typename Layout>
  WAYWISER_DEVICE WAYWISER_APART void send_lines_apart(const Instruction& each, const Piece& piece, const Layout from) {
    send_lines<Word>(each, piece, from);
  }
  template <typename Word, typename Layout>
  WAYWISER_DEVICE WAYWISER_APART void take_lines_apart(const Instruction& each, const Piece& piece, const Layout to) {
    take_lines<Word, true>(each, piece, to);
  }

  template <typename Word, typename Layout>
  WAYWISER_DEVICE void send_lines(const Instruction& each, const Piece& piece, const Layout from) {
    const std::uint64_t bytes = each.bytes;
    block::send_lines<lines_at_once>(
        gpu_, piece.bytes, lines_of(each, piece), [&] { return this->tag(); },
        [&](Vector16& word, std::uint32_t pair, unsigned lane, std::uint32_t end) {
          if (const std::uint64_t at = place_of_word(piece, pair, lane); pair < end && at < bytes)
            word = load_vector<Word>(from, at, bytes);
        },
        [&](auto loads) {
          loads();
          this->settle();
        });
  }

  template <typename Word, bool reduces, typename Layout>
  WAYWISER_DEVICE void take_lines(const Instruction& each, const Piece& piece, const Layout to) {
    const std::uint64_t bytes = each.bytes;
    block::take_lines<lines_at_once>(
        gpu_, piece.bytes, lines_of(each, piece), [&] { return this->tag(); },
        [&](auto have_come) { this->wait_together([&] { return have_come() ? 0 : each.peer + 1; }); },
        [&](const Vector16& word, std::uint32_t pair, unsigned lane, std::uint32_t end) {
          const std::uint64_t at = place_of_word(piece, pair, lane);
          if (pair >= end || at >= bytes) return;
          if constexpr (reduces) {
            if (each.reduces) return this->deliver(each, at, word);
          }
          store_vector<Word>(to, at, bytes, word);
        });
  }

  // mark() says that it has arrived.
  WAYWISER_DEVICE void send_bulk(const Instruction& each, const Piece& piece) {
    move_bytes(gpu_, each.from, each.direct ? each.to : view_of_slot(each), piece.begin, piece.bytes, each.word);
  }

  // By a block's first thread; puts of other blocks came before it: they have joined.
  WAYWISER_DEVICE void signal(const Instruction& each, std::uint32_t mine) {
    gpu_.each_thread([&](unsigned thread) {
      if (thread != 0 || mine != 0) return;
      for (std::uint32_t piece = 0; piece < each.pieces; ++piece) gpu_.release(flag(each, piece), tag());
    });
  }

  WAYWISER_DEVICE WAYWISER_APART void take_bulk(const Instruction& each, const Piece& piece) {
    gpu_.each_thread([&](unsigned thread) {
      if (thread == 0) wait_for_piece(each, piece.index);
    });
    gpu_.sync();
    if (!each.reduces) return move_bytes(gpu_, view_of_slot(each), each.to, piece.begin, piece.bytes, each.word);
    const auto* from = reinterpret_cast<const Vector16*>(slot(each));
    each_unit<Vector16>(piece, [&](std::uint64_t at) { deliver(each, at, from[at / 16]); });
  }
};

}  // namespace waywiser::program
