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
      : ProgramBody(gpu, terms, terms.instructions, terms.rounds) {}
  // With copies of the instructions and rounds.
  WAYWISER_DEVICE ProgramBody(Gpu& gpu, const ProgramArguments& terms, const Instruction* instructions,
                              const std::uint32_t* rounds)
      : gpu_(gpu),
        terms_(terms),
        instructions_(instructions),
        rounds_(rounds),
        number_(gpu.peek(&terms.state->ended) / terms.blocks + 1) {}

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
      if (gpu_.block() == 0 && thread + 1 == gpu_.threads())  // beside the waits
        for (auto* told : terms_.tell)
          if (told != nullptr) gpu_.release(told, number_);
      if (thread != 0) return;
      for (unsigned rank = 0; rank < block::max_ranks; ++rank)
        if ((terms_.gives_to >> rank & 1) != 0)
          wait(0, [&] { return gpu_.acquire(terms_.begun + rank) + 1 >= number_ ? 0 : rank + 1; });
    });
    gpu_.sync();
  }

  WAYWISER_DEVICE void give(std::uint32_t round) {
    bool stores = false;  // messages whose arrival has to be marked
    each(round, [&](const Instruction& each) {
      if (waits(each.act)) return;
      carry_out(each);
      stores = stores || (is_marked(each) && first_piece(each) < each.pieces);
    });
    if (stores) mark(round);
  }
  WAYWISER_DEVICE void take(std::uint32_t round) {
    bool awaits = false;  // messages that need no more than that
    each(round, [&](const Instruction& each) {
      if (!waits(each.act)) return;
      each.direct ? static_cast<void>(awaits = awaits || first_piece(each) < each.pieces) : carry_out(each);
    });
    if (awaits) wait_for_direct(round);
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
    for (std::uint32_t i = rounds_[round]; i < rounds_[round + 1]; ++i) f(instructions_[i]);
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

  WAYWISER_DEVICE std::uint32_t first_piece(const Instruction& each) const {
    return (gpu_.block() + terms_.blocks - each.first_block) % terms_.blocks;
  }
  WAYWISER_DEVICE static bool is_marked(const Instruction& each) { return each.act == Act::send && !each.ll; }

  // All pieces that this block has stored in a round have arrived: one thread for each says so, since every such word
  // waits for all earlier stores on their way to other GPUs.
  WAYWISER_DEVICE void mark(std::uint32_t round) {
    gpu_.sync();
    gpu_.each_thread([&](unsigned thread) {
      std::uint32_t turn = 0;
      each(round, [&](const Instruction& each) {
        if (!is_marked(each)) return;
        for (std::uint32_t piece = first_piece(each); piece < each.pieces; piece += terms_.blocks)
          if (turn++ % gpu_.threads() == thread) gpu_.release(flag(each, piece), tag());
      });
    });
  }

  WAYWISER_DEVICE void wait_for_piece(const Instruction& each, std::uint32_t piece) {
    wait(0, [&] { return gpu_.acquire(flag(each, piece)) == tag() ? 0 : each.peer + 1; });
  }
  // One thread for each piece of the round's direct messages.
  WAYWISER_DEVICE void wait_for_direct(std::uint32_t round) {
    gpu_.each_thread([&](unsigned thread) {
      std::uint32_t turn = 0;
      each(round, [&](const Instruction& each) {
        if (each.act != Act::take || !each.direct) return;
        for (std::uint32_t piece = first_piece(each); piece < each.pieces; piece += terms_.blocks)
          if (turn++ % gpu_.threads() == thread) wait_for_piece(each, piece);
      });
    });
    gpu_.sync();
  }

  WAYWISER_DEVICE void carry_out(const Instruction& each) {
    const std::uint32_t mine = first_piece(each);
    if (each.act == Act::signal) return signal(each, mine);
    if (each.direct && mine < each.pieces) wait_for_start(each.peer);
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
  WAYWISER_DEVICE View view_of_slot(const Instruction& each) const {
    View view;
    view.data = slot(each);
    view.run = ~std::uint64_t{0};
    return view;
  }
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
    if (!each.reduces) return move_bytes(gpu_, each.from, each.to, piece.begin, piece.bytes, each.word);
    each_unit<Vector16>(
        piece, [&](std::uint64_t at) { deliver(each, at, load_unit<Vector16>(each.from, at, each.bytes, each.word)); });
  }

  template <typename Unit>
  WAYWISER_DEVICE void deliver(const Instruction& each, std::uint64_t at, Unit unit) {
    if (each.reduces) unit = reduced<Gpu>(each, load_unit<Unit>(each.to, at, each.bytes, each.word), unit);
    store_unit(each.to, at, each.bytes, each.word, unit);
  }

  // Calls f(offset, offset of another unit, or the same), so that a thread has two loads under way.
  template <typename Unit, typename Function>
  WAYWISER_DEVICE void each_pair(const Piece& piece, Function f) {
    gpu_.each_thread([&](unsigned thread) {
      const std::uint64_t step = gpu_.threads() * sizeof(Unit);
      for (std::uint64_t at = thread * sizeof(Unit); at < piece.bytes; at += 2 * step)
        f(piece.begin + at, piece.begin + (at + step < piece.bytes ? at + step : at));
    });
  }

  WAYWISER_DEVICE void send_ll(const Instruction& each, const Piece& piece) {
    auto* packets = reinterpret_cast<block::LlPacket*>(slot(each));
    each_pair<block::Word8>(piece, [&](std::uint64_t at, std::uint64_t next) {
      const auto one = load_unit<block::Word8>(each.from, at, each.bytes, each.word);
      const auto two = load_unit<block::Word8>(each.from, next, each.bytes, each.word);
      gpu_.store_packet(packets + at / 8, one, tag());
      if (next != at) gpu_.store_packet(packets + next / 8, two, tag());
    });
  }

  WAYWISER_DEVICE void take_ll(const Instruction& each, const Piece& piece) {
    const auto* packets = reinterpret_cast<const block::LlPacket*>(slot(each));
    const auto take = [&](std::uint64_t at, block::LlPacket packet) {
      wait(0, [&] {
        if (packet.is_of(tag())) return 0u;
        packet = gpu_.load_packet(packets + at / 8);
        return packet.is_of(tag()) ? 0u : each.peer + 1;
      });
      deliver(each, at, block::Word8{{packet.low, packet.high}});
    };
    each_pair<block::Word8>(piece, [&](std::uint64_t at, std::uint64_t next) {
      const block::LlPacket one = gpu_.load_packet(packets + at / 8), two = gpu_.load_packet(packets + next / 8);
      take(at, one);
      if (next != at) take(next, two);
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

  WAYWISER_DEVICE void take_bulk(const Instruction& each, const Piece& piece) {
    gpu_.each_thread([&](unsigned thread) {
      if (thread == 0) wait_for_piece(each, piece.index);
    });
    gpu_.sync();
    if (!each.reduces) return move_bytes(gpu_, view_of_slot(each), each.to, piece.begin, piece.bytes, each.word);
    const auto* from = reinterpret_cast<const Vector16*>(slot(each));
    each_unit<Vector16>(piece, [&](std::uint64_t at) { deliver(each, at, from[at / 16]); });
  }

  Gpu& gpu_;
  const ProgramArguments& terms_;
  const Instruction* const instructions_;
  const std::uint32_t* const rounds_;
  const std::uint64_t number_;
};

}  // namespace waywiser::program
