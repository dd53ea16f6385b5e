#pragma once

#include <type_traits>

#include "waywiser/collective/device_schedule/moving.hpp"
#include "waywiser/collective/device_schedule/program.hpp"
#include "waywiser/kernels/block/waiter.hpp"

namespace waywiser::program {

// The forms of programs: of any kind; contiguous messages of one round by LL; messages of one round by LL128; direct
// messages of one round.
struct AnyProgram {};
struct PacketsProgram {};
template <typename WordOfAll, typename LayoutOfAll>
struct LinesProgram {
  using Word = WordOfAll;
  using Layout = LayoutOfAll;
};
template <typename LayoutOfAll>
struct StoresProgram {
  using Layout = LayoutOfAll;
};

// Calls f.template operator()<...>() with the type of a form.
template <typename Function>
void with_form(Form form, Function f) {
  switch (form) {
    case Form::any: return f.template operator()<AnyProgram>();
    case Form::packets: return f.template operator()<PacketsProgram>();
    case Form::lines: return f.template operator()<LinesProgram<Vector16, Plain>>();
    case Form::lines_of_rows_16: return f.template operator()<LinesProgram<Vector16, View>>();
    case Form::lines_of_rows_8: return f.template operator()<LinesProgram<Vector<std::uint64_t, 1>, View>>();
    case Form::lines_of_rows_4: return f.template operator()<LinesProgram<Vector<std::uint32_t, 1>, View>>();
    case Form::stores: return f.template operator()<StoresProgram<Plain>>();
    case Form::stores_of_rows: return f.template operator()<StoresProgram<View>>();
  }
}

// One block's part of a start. A slot at another rank is written again two starts later, when that rank has begun the
// start between and so has ended the one that read it. Direct messages are written once it has begun this start. `Gpu`
// is a block of threads (kernels/block/README.md); every thread calls sync() equally often.
template <typename Gpu, typename Form = AnyProgram>
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
        number_(gpu.peek(&terms.state->progress) / most_blocks + 1) {}

  WAYWISER_DEVICE void run() {
    begin();
    for (std::uint32_t round = 0; round < terms_.round_count; ++round) {
      give(round);
      take(round);
      if (is_any && round + 1 < terms_.round_count) join(round);
    }
    settle();
  }

  // The parts of run(), for a caller that runs all blocks in one thread: each part for all blocks before the next part.
  WAYWISER_DEVICE void begin() {
    if (gpu_.block() != 0) return;
    each_by_a_thread(block::max_ranks, [&](unsigned rank) {
      if (terms_.tell[rank] != nullptr) gpu_.post(terms_.tell[rank], number_);
    });
  }

  // Once for each block, before its first store to another rank: then the slots may be written. The wait comes when
  // this block's first loads are under way.
  WAYWISER_DEVICE void settle() {
    if (settled_) return;
    settled_ = true;
    each_by_a_thread(block::max_ranks, [&](unsigned rank) {
      if ((terms_.gives_to >> rank & 1) != 0)
        wait(0, [&] { return gpu_.peek(terms_.begun + rank) + 1 >= number_ ? 0 : rank + 1; });
    });
    gpu_.sync();
    // All threads have read the number: the next start, which begins when this kernel has ended, has the next one.
    gpu_.each_thread([&](unsigned thread) {
      if (thread == 0)
        gpu_.add(&terms_.state->progress,
                 most_blocks / terms_.blocks + (gpu_.block() == 0 ? most_blocks % terms_.blocks : 0));
    });
  }

  WAYWISER_DEVICE void give(std::uint32_t round) {
    bool stores = false;  // messages whose arrival has to be marked
    each(round, [&](const Instruction& each) {
      if (waits(each.act)) return;
      if constexpr (is_lines) {
        each_piece(each, [&](const Piece& piece) {
          send_lines<typename Form::Word>(each, piece, layout<typename Form::Layout>(each.from));
        });
      } else if constexpr (is_packets) {
        each_piece(each, [&](const Piece& piece) { send_packets(each, piece); });
      } else if constexpr (is_stores) {
        each_piece(each, [&](const Piece& piece) { store(each, piece); });
      } else {
        settle();
        carry_out(each);
      }
      stores = stores || (!is_lines && !is_packets && is_marked(each) && first_piece(each) < each.pieces);
    });
    if (stores) mark(round);
  }
  WAYWISER_DEVICE void take(std::uint32_t round) {
    if (!is_any) settle();  // rather now than once the data have arrived
    bool awaits = false;    // messages that need no more than that
    each(round, [&](const Instruction& each) {
      if (!waits(each.act)) return;
      if constexpr (is_lines)
        each_piece(each, [&](const Piece& piece) {
          take_lines<typename Form::Word>(each, piece, layout<typename Form::Layout>(each.to));
        });
      else if constexpr (is_packets)
        each_piece(each, [&](const Piece& piece) { take_packets(each, piece); });
      else if (is_stores || each.direct)
        awaits = awaits || first_piece(each) < each.pieces;
      else
        carry_out(each);
    });
    if (awaits) wait_for_direct(round);
  }

  // Waits until all blocks have ended the round.
  WAYWISER_DEVICE void join(std::uint32_t round) {
    if (terms_.blocks == 1) return gpu_.sync();
    const std::uint64_t mark = number_ * terms_.round_count + round;
    gpu_.sync();
    if (gpu_.block() == 0) {
      each_by_a_thread(terms_.blocks, [&](unsigned other) {
        if (other != 0) wait_for_mark(terms_.state->arrived + other, mark);
      });
      gpu_.sync();
    }
    gpu_.each_thread([&](unsigned thread) {
      if (thread != 0) return;
      gpu_.release(gpu_.block() == 0 ? &terms_.state->gate : terms_.state->arrived + gpu_.block(), mark);
      if (gpu_.block() != 0) wait_for_mark(&terms_.state->gate, mark);
    });
    gpu_.sync();
  }

 private:
  using Waiter = block::Waiter<Gpu>;
  static constexpr bool is_any = std::is_same_v<Form, AnyProgram>;
  static constexpr bool is_lines = requires { typename Form::Word; };
  static constexpr bool is_packets = std::is_same_v<Form, PacketsProgram>;
  static constexpr bool is_stores = !is_any && !is_packets && !is_lines;

  template <typename Layout>
  WAYWISER_DEVICE static Layout layout(const View& view) {
    if constexpr (std::is_same_v<Layout, Plain>)
      return Plain{view.data};
    else
      return view;
  }

  WAYWISER_DEVICE std::uint64_t tag() const { return block::tag_of(number_, terms_.signature); }

  template <typename Function>
  WAYWISER_DEVICE void each(std::uint32_t round, Function f) {
    for (std::uint32_t i = rounds_[round]; i < rounds_[round + 1]; ++i) f(instructions_[i]);
  }

  // Calls f(i) for i < count, each by one thread.
  template <typename Function>
  WAYWISER_DEVICE void each_by_a_thread(unsigned count, Function f) {
    gpu_.each_thread([&](unsigned thread) {
      for (unsigned i = thread; i < count; i += gpu_.threads()) f(i);
    });
  }

  // Waits between blocks last longer, so that a block that waits for another rank reports first.
  static constexpr std::uint64_t join_extra_ns = 10'000'000'000;
  WAYWISER_DEVICE void wait_for_mark(const std::uint64_t* by, std::uint64_t mark) {
    wait(join_extra_ns, [&] { return gpu_.acquire(by) == mark ? 0 : terms_.rank + 1; });
  }
  template <typename Missing>
  WAYWISER_DEVICE void wait(std::uint64_t extra_ns, Missing missing) {
    Waiter::wait(gpu_, missing, [&](unsigned peer, unsigned times, block::Seen seen) {
      return look_around(gpu_, terms_, number_, extra_ns, peer, times, seen);
    });
  }
  template <typename Missing>
  WAYWISER_DEVICE void wait_together(Missing missing) {
    Waiter::wait_together(gpu_, missing, [&](unsigned peer, unsigned times, block::Seen seen) {
      return look_around(gpu_, terms_, number_, 0, peer, times, seen);
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
  WAYWISER_DEVICE static bool is_marked(const Instruction& each) {
    return each.act == Act::send && !each.ll && !each.ll128;
  }

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
    each_piece(each, [&](const Piece& piece) {
      if (each.act == Act::copy)
        copy(each, piece);
      else if (each.act == Act::take)
        each.ll ? take_ll(each, piece) : each.ll128 ? take_ll128(each, piece) : take_bulk(each, piece);
      else
        each.ll ? send_ll(each, piece) : each.ll128 ? send_ll128(each, piece) : send_bulk(each, piece);
    });
  }

  // Before a rank has begun this start, its arrays are not this rank's to write.
  WAYWISER_DEVICE void wait_for_start(std::uint32_t peer) {
    if ((begun_ >> peer & 1) != 0) return;
    begun_ |= 1u << peer;
    gpu_.each_thread([&](unsigned thread) {
      if (thread == 0) wait(0, [&] { return gpu_.peek(terms_.begun + peer) >= number_ ? 0 : peer + 1; });
    });
    gpu_.sync();
  }

  struct Piece {
    std::uint32_t index;
    std::uint64_t begin, bytes;
  };
  // This block's pieces.
  template <typename Function>
  WAYWISER_DEVICE void each_piece(const Instruction& each, Function f) {
    for (std::uint32_t piece = first_piece(each); piece < each.pieces; piece += terms_.blocks) {
      const std::uint64_t begin = piece * each.piece, left = each.bytes - begin;
      f(Piece{piece, begin, left < each.piece ? left : each.piece});
    }
  }

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

  // Calls f(offset, offset of another unit, or the same), so that a thread has two loads under way.
  template <typename Unit, typename Function>
  WAYWISER_DEVICE void each_pair(const Piece& piece, Function f) {
    gpu_.each_thread([&](unsigned thread) {
      const std::uint64_t step = gpu_.threads() * sizeof(Unit);
      for (std::uint64_t at = thread * sizeof(Unit); at < piece.bytes; at += 2 * step)
        f(piece.begin + at, piece.begin + (at + step < piece.bytes ? at + step : at));
    });
  }

  // The same for contiguous blocks of whole words.
  WAYWISER_DEVICE void send_packets(const Instruction& each, const Piece& piece) {
    const Plain from{each.from.data};
    const std::uint64_t bytes = each.bytes;
    auto* packets = reinterpret_cast<block::LlPacket*>(slot(each));
    gpu_.each_thread([&](unsigned thread) {
      const std::uint64_t step = gpu_.threads() * sizeof(block::Word8), end = piece.begin + piece.bytes;
      for (std::uint64_t at = piece.begin + thread * sizeof(block::Word8);; at += 2 * step) {
        block::Word8 words[2] = {};
        WAYWISER_UNROLL
        for (unsigned i = 0; i < 2; ++i)
          if (at + i * step < end) words[i] = load_unit<block::Word8>(from, at + i * step, bytes);
        settle();
        WAYWISER_UNROLL
        for (unsigned i = 0; i < 2; ++i)
          if (at + i * step < end) gpu_.store_packet(packets + (at + i * step) / 8, words[i], tag());
        if (at + 2 * step >= end) return;
      }
    });
  }
  WAYWISER_DEVICE void take_packets(const Instruction& each, const Piece& piece) {
    const Plain to{each.to.data};
    const std::uint64_t bytes = each.bytes;
    const auto* packets = reinterpret_cast<const block::LlPacket*>(slot(each));
    each_pair<block::Word8>(piece, [&](std::uint64_t at, std::uint64_t next) {
      block::LlPacket one, two;
      wait(0, [&] {
        one = gpu_.load_packet(packets + at / 8);
        two = gpu_.load_packet(packets + next / 8);
        return one.is_of(tag()) && two.is_of(tag()) ? 0u : each.peer + 1;
      });
      store_unit(to, at, bytes, block::Word8{{one.low, one.high}});
      if (next != at) store_unit(to, next, bytes, block::Word8{{two.low, two.high}});
    });
  }

  WAYWISER_DEVICE WAYWISER_APART void send_ll(const Instruction& each, const Piece& piece) {
    auto* packets = reinterpret_cast<block::LlPacket*>(slot(each));
    each_pair<block::Word8>(piece, [&](std::uint64_t at, std::uint64_t next) {
      const auto one = load_unit<block::Word8>(each.from, at, each.bytes, each.word);
      const auto two = load_unit<block::Word8>(each.from, next, each.bytes, each.word);
      gpu_.store_packet(packets + at / 8, one, tag());
      if (next != at) gpu_.store_packet(packets + next / 8, two, tag());
    });
  }

  WAYWISER_DEVICE WAYWISER_APART void take_ll(const Instruction& each, const Piece& piece) {
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

  static constexpr unsigned lines_at_once = 4;  // of a thread: all its loads are under way before its first store

  // Calls f(lane, pairs, end): a thread's lane of some pairs of lines, of which the piece has `end`.
  template <typename Function>
  WAYWISER_DEVICE void each_tile(const Piece& piece, Function f) {
    const auto end = static_cast<std::uint32_t>(block::pairs_for(piece.bytes));
    const std::uint32_t stride = gpu_.threads() / block::lanes_of_pair;
    for (std::uint32_t begin = 0; begin < end; begin += stride * lines_at_once)
      gpu_.each_thread([&](unsigned thread) {
        std::uint32_t pairs[lines_at_once];
        WAYWISER_UNROLL
        for (unsigned i = 0; i < lines_at_once; ++i) pairs[i] = begin + thread / block::lanes_of_pair + i * stride;
        f(thread % block::lanes_of_pair, pairs, end);
      });
  }
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
    take_lines<Word>(each, piece, to);
  }

  template <typename Word, typename Layout>
  WAYWISER_DEVICE void send_lines(const Instruction& each, const Piece& piece, const Layout from) {
    const std::uint64_t bytes = each.bytes;
    block::Ll128Slot* to = lines_of(each, piece);
    each_tile(piece, [&](unsigned lane, const std::uint32_t (&pairs)[lines_at_once], std::uint32_t end) {
      Vector16 words[lines_at_once] = {};
      WAYWISER_UNROLL
      for (unsigned i = 0; i < lines_at_once; ++i)
        if (const std::uint64_t at = place_of_word(piece, pairs[i], lane); pairs[i] < end && at < bytes)
          words[i] = load_vector<Word>(from, at, bytes);
      settle();
      gpu_.join_warp();
      WAYWISER_UNROLL
      for (unsigned i = 0; i < lines_at_once; ++i)
        gpu_.store_line(to + std::size_t{pairs[i]} * block::lanes_of_pair + lane, lane,
                        gpu_.line_word(words[i], lane, tag()), pairs[i] < end);
    });
  }

  template <typename Word, typename Layout>
  WAYWISER_DEVICE void take_lines(const Instruction& each, const Piece& piece, const Layout to) {
    const std::uint64_t bytes = each.bytes;
    const block::Ll128Slot* from = lines_of(each, piece);
    each_tile(piece, [&](unsigned lane, const std::uint32_t (&pairs)[lines_at_once], std::uint32_t end) {
      block::Ll128Look looks[lines_at_once];
      wait_together([&] {
        WAYWISER_UNROLL
        for (unsigned i = 0; i < lines_at_once; ++i)
          if (pairs[i] < end)
            looks[i] = gpu_.look_at_line(from + std::size_t{pairs[i]} * block::lanes_of_pair + lane, lane, tag());
        bool there = true;  // compared when all polls are in flight
        WAYWISER_UNROLL
        for (unsigned i = 0; i < lines_at_once; ++i)
          there = there && (pairs[i] >= end || gpu_.is_there(looks[i], lane, tag()));
        return there ? 0 : each.peer + 1;
      });
      WAYWISER_UNROLL
      for (unsigned i = 0; i < lines_at_once; ++i) {
        const Vector16 word = gpu_.word_in_line(looks[i], lane);
        const std::uint64_t at = place_of_word(piece, pairs[i], lane);
        if (pairs[i] >= end || at >= bytes) continue;
        if constexpr (is_any) {
          if (each.reduces) {
            deliver(each, at, word);
            continue;
          }
        }
        store_vector<Word>(to, at, bytes, word);
      }
    });
  }

  // A direct message.
  WAYWISER_DEVICE void store(const Instruction& each, const Piece& piece) {
    if constexpr (is_stores) {
      using Layout = typename Form::Layout;
      constexpr unsigned batch = std::is_same_v<Layout, Plain> ? copy_batch : rows_batch;
      move_words<Vector16, batch>(gpu_, layout<Layout>(each.from), layout<Layout>(each.to), piece.begin, piece.bytes,
                                  [&] {
                                    settle();
                                    wait_for_start(each.peer);
                                  });
    }
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

  Gpu& gpu_;
  const ProgramArguments& terms_;
  const Instruction* const instructions_;
  const std::uint32_t* const rounds_;
  const std::uint64_t number_;
  bool settled_ = false;
  std::uint32_t begun_ = 0;  // ranks that have begun this start, as bits
};

}  // namespace waywiser::program
