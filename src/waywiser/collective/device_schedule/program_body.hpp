#pragma once

#include "waywiser/collective/device_schedule/moving.hpp"
#include "waywiser/collective/device_schedule/program.hpp"
#include "waywiser/kernels/block/waiter.hpp"

namespace waywiser::program {

// One block's part of a start. A slot at another rank is written again two starts later, when that rank has begun the
// start between and so has ended the one that read it. Direct messages are written once it has begun this start. `Gpu`
// is a block of threads (kernels/block/README.md); every thread calls sync() equally often.
template <typename Gpu>
class ProgramBody {
 public:
  WAYWISER_DEVICE ProgramBody(Gpu& gpu, const ProgramArguments& terms)
      : gpu_(gpu), terms_(terms), number_(gpu.peek(&terms.state->ended) / terms.blocks + 1) {}

  WAYWISER_DEVICE void run() {
    begin();
    for (std::uint32_t round = 0; round < terms_.round_count; ++round) {
      give(round);
      take(round);
      if (round + 1 < terms_.round_count) join(round);
    }
    end();
  }

  // The parts of run(), for a caller that runs all blocks in one thread: each part for all blocks before the next part.
  WAYWISER_DEVICE void begin() {
    gpu_.each_thread([&](unsigned thread) {
      if (thread != 0) return;
      for (unsigned rank = 0; gpu_.block() == 0 && rank < block::max_ranks; ++rank)
        if (terms_.tell[rank] != nullptr) gpu_.release(terms_.tell[rank], number_);
      for (unsigned rank = 0; rank < block::max_ranks; ++rank)
        if ((terms_.gives_to >> rank & 1) != 0)
          wait(0, [&] { return gpu_.acquire(terms_.begun + rank) + 1 >= number_ ? 0 : rank + 1; });
    });
    gpu_.sync();
  }

  WAYWISER_DEVICE void give(std::uint32_t round) {
    each(round, [&](const Instruction& each) {
      if (!waits(each.act)) carry_out(each);
    });
  }
  WAYWISER_DEVICE void take(std::uint32_t round) {
    each(round, [&](const Instruction& each) {
      if (waits(each.act)) carry_out(each);
    });
  }

  // Waits until all blocks have ended the round.
  WAYWISER_DEVICE void join(std::uint32_t round) {
    if (terms_.blocks == 1) return gpu_.sync();
    const std::uint64_t mark = number_ * terms_.round_count + round;
    gpu_.sync();
    gpu_.each_thread([&](unsigned thread) {
      if (thread != 0) return;
      gpu_.release(terms_.state->arrived + gpu_.block(), mark);
      if (gpu_.block() == 0) {
        for (unsigned other = 1; other < terms_.blocks; ++other)
          wait(join_extra_ns,
               [&] { return gpu_.acquire(terms_.state->arrived + other) == mark ? 0 : terms_.rank + 1; });
        gpu_.release(&terms_.state->gate, mark);
      } else {
        wait(join_extra_ns, [&] { return gpu_.acquire(&terms_.state->gate) == mark ? 0 : terms_.rank + 1; });
      }
    });
    gpu_.sync();
  }

  WAYWISER_DEVICE void end() {
    gpu_.sync();
    gpu_.each_thread([&](unsigned thread) {
      if (thread == 0) gpu_.add(&terms_.state->ended, 1);
    });
  }

 private:
  using Waiter = block::Waiter<Gpu>;

  WAYWISER_DEVICE std::uint64_t tag() const { return block::tag_of(number_, terms_.signature); }

  template <typename Function>
  WAYWISER_DEVICE void each(std::uint32_t round, Function f) {
    for (std::uint32_t i = terms_.rounds[round]; i < terms_.rounds[round + 1]; ++i) f(terms_.instructions[i]);
  }

  // Waits between blocks last longer, so that a block that waits for another rank reports first.
  static constexpr std::uint64_t join_extra_ns = 10'000'000'000;
  template <typename Missing>
  WAYWISER_DEVICE void wait(std::uint64_t extra_ns, Missing missing) {
    Waiter::wait(gpu_, missing, [&](unsigned peer, unsigned times, block::Seen seen) {
      return look_around(gpu_, terms_, number_, extra_ns, peer, times, seen);
    });
  }
  WAYWISER_DEVICE WAYWISER_APART static block::Seen look_around(Gpu& gpu, const ProgramArguments& terms,
                                                                std::uint64_t number, std::uint64_t extra_ns,
                                                                unsigned peer, unsigned times, block::Seen seen) {
    return Waiter(gpu, terms.notice, terms.deadline_ns + extra_ns)
        .check(peer, times, seen, {0, number}, block::no_description);
  }

  WAYWISER_DEVICE void carry_out(const Instruction& each) {
    const std::uint32_t mine = (gpu_.block() + terms_.blocks - each.first_block) % terms_.blocks;
    if (each.act == Act::signal) return signal(each, mine);
    if (each.direct && each.act != Act::take && mine < each.pieces) wait_for_start(each.peer);
    for (std::uint32_t piece = mine; piece < each.pieces; piece += terms_.blocks) {
      const std::uint64_t begin = piece * each.piece, left = each.bytes - begin;
      const Piece part{piece, begin, left < each.piece ? left : each.piece};
      if (each.act == Act::copy)
        copy(each, part);
      else if (each.act == Act::take)
        each.ll ? take_ll(each, part) : take_bulk(each, part);
      else
        each.ll ? send_ll(each, part) : send_bulk(each, part);
    }
  }

  // Before a rank has begun this start, its arrays are not this rank's to write.
  WAYWISER_DEVICE void wait_for_start(std::uint32_t peer) {
    gpu_.each_thread([&](unsigned thread) {
      if (thread == 0) wait(0, [&] { return gpu_.acquire(terms_.begun + peer) >= number_ ? 0 : peer + 1; });
    });
    gpu_.sync();
  }

  struct Piece {
    std::uint32_t index;
    std::uint64_t begin, bytes;
  };

  template <typename T>
  WAYWISER_DEVICE T* of_turn(T* first, std::uint64_t turn) const {
    return reinterpret_cast<T*>(reinterpret_cast<std::byte*>(first) + (number_ % 2 == 0 ? turn : 0));
  }
  WAYWISER_DEVICE std::byte* slot(const Instruction& each) const { return of_turn(each.slot, each.turn); }
  WAYWISER_DEVICE std::uint64_t* flag(const Instruction& each, std::uint32_t piece) const {
    return of_turn(each.flags, each.turn) + piece;
  }

  // Calls f(offset in the block) for each unit of a piece, by all threads.
  template <typename Unit, typename Function>
  WAYWISER_DEVICE void each_unit(const Piece& piece, Function f) {
    gpu_.each_thread([&](unsigned thread) {
      for (std::uint64_t at = thread * sizeof(Unit); at < piece.bytes; at += gpu_.threads() * sizeof(Unit))
        f(piece.begin + at);
    });
  }

  WAYWISER_DEVICE void copy(const Instruction& each, const Piece& piece) {
    each_unit<Vector16>(
        piece, [&](std::uint64_t at) { deliver(each, at, load_unit<Vector16>(each.from, at, each.bytes, each.word)); });
  }

  template <typename Unit>
  WAYWISER_DEVICE void deliver(const Instruction& each, std::uint64_t at, Unit unit) {
    if (each.reduces) unit = reduced<Gpu>(each, load_unit<Unit>(each.to, at, each.bytes, each.word), unit);
    store_unit(each.to, at, each.bytes, each.word, unit);
  }

  WAYWISER_DEVICE void send_ll(const Instruction& each, const Piece& piece) {
    auto* packets = reinterpret_cast<block::LlPacket*>(slot(each));
    each_unit<block::Word8>(piece, [&](std::uint64_t at) {
      gpu_.store_packet(packets + at / 8, load_unit<block::Word8>(each.from, at, each.bytes, each.word), tag());
    });
  }

  WAYWISER_DEVICE void take_ll(const Instruction& each, const Piece& piece) {
    const auto* packets = reinterpret_cast<const block::LlPacket*>(slot(each));
    each_unit<block::Word8>(piece, [&](std::uint64_t at) {
      block::LlPacket packet{};
      wait(0, [&] {
        packet = gpu_.load_packet(packets + at / 8);
        return packet.is_of(tag()) ? 0 : each.peer + 1;
      });
      deliver(each, at, block::Word8{{packet.low, packet.high}});
    });
  }

  WAYWISER_DEVICE void send_bulk(const Instruction& each, const Piece& piece) {
    auto* to = reinterpret_cast<Vector16*>(slot(each));
    each_unit<Vector16>(piece, [&](std::uint64_t at) {
      const Vector16 unit = load_unit<Vector16>(each.from, at, each.bytes, each.word);
      if (!each.direct)
        gpu_.store_far(to + at / 16, unit);
      else if (each.word == 16 && at + 16 <= each.bytes)
        gpu_.store_far(reinterpret_cast<Vector16*>(each.to.at(at)), unit);
      else
        store_apart(each.to, at, each.bytes, each.word, unit);
    });
    if (each.act == Act::put) return;
    gpu_.sync();
    gpu_.each_thread([&](unsigned thread) {
      if (thread == 0) gpu_.release(flag(each, piece.index), tag());
    });
  }

  // By a block's first thread; puts of other blocks came before it: they have joined.
  WAYWISER_DEVICE void signal(const Instruction& each, std::uint32_t mine) {
    gpu_.each_thread([&](unsigned thread) {
      if (thread != 0 || mine != 0) return;
      for (std::uint32_t piece = 0; piece < each.pieces; ++piece) gpu_.release(flag(each, piece), tag());
    });
  }

  WAYWISER_DEVICE void take_bulk(const Instruction& each, const Piece& piece) {
    gpu_.each_thread([&](unsigned thread) {
      if (thread == 0) wait(0, [&] { return gpu_.acquire(flag(each, piece.index)) == tag() ? 0 : each.peer + 1; });
    });
    gpu_.sync();
    if (each.direct) return;
    const auto* from = reinterpret_cast<const Vector16*>(slot(each));
    each_unit<Vector16>(piece, [&](std::uint64_t at) { deliver(each, at, from[at / 16]); });
  }

  Gpu& gpu_;
  const ProgramArguments& terms_;
  const std::uint64_t number_;
};

}  // namespace waywiser::program
