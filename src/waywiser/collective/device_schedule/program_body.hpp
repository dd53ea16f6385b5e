#pragma once

#include <type_traits>

#include "waywiser/collective/device_schedule/program_messages.hpp"

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

// One block's part of a start.
template <typename Gpu, typename Form = AnyProgram>
class ProgramBody : ProgramMessages<Gpu> {
 public:
  // The parts of run(), for a caller that runs all blocks in one thread: each part for all blocks before the next part.
  using ProgramStart<Gpu>::begin, ProgramStart<Gpu>::settle;

  WAYWISER_DEVICE ProgramBody(Gpu& gpu, const ProgramArguments& terms)
      : ProgramBody(gpu, terms, terms.instructions, terms.rounds) {}
  // With copies of the instructions and rounds.
  WAYWISER_DEVICE ProgramBody(Gpu& gpu, const ProgramArguments& terms, const Instruction* instructions,
                              const std::uint32_t* rounds)
      : ProgramMessages<Gpu>(gpu, terms), instructions_(instructions), rounds_(rounds) {}

  WAYWISER_DEVICE void run() {
    begin();
    for (std::uint32_t round = 0; round < terms_.round_count; ++round) {
      give(round);
      take(round);
      if (is_any && round + 1 < terms_.round_count) join(round);
    }
    settle();
  }

  WAYWISER_DEVICE void give(std::uint32_t round) {
    bool stores = false;  // messages whose arrival has to be marked
    each(round, [&](const Instruction& each) {
      if (waits(each.act)) return;
      if constexpr (is_lines) {
        each_piece(each, [&](const Piece& piece) {
          this->template send_lines<typename Form::Word>(each, piece, layout<typename Form::Layout>(each.from));
        });
      } else if constexpr (is_packets) {
        each_piece(each, [&](const Piece& piece) { this->template send_packets<true>(each, piece); });
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
          this->template take_lines<typename Form::Word, false>(each, piece, layout<typename Form::Layout>(each.to));
        });
      else if constexpr (is_packets)
        each_piece(each, [&](const Piece& piece) { this->template take_packets<true>(each, piece); });
      else if (is_stores || each.direct)
        awaits = awaits || first_piece(each) < each.pieces;
      else
        carry_out(each);
    });
    if (awaits) wait_for_direct(round);
  }

 private:
  using Messages = ProgramMessages<Gpu>;
  using Messages::carry_out, Messages::each_piece, Messages::first_piece, Messages::flag, Messages::gpu_,
      Messages::join;
  using Messages::tag, Messages::terms_, Messages::wait_for_piece, Messages::wait_for_start;
  using typename Messages::Piece;
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

  template <typename Function>
  WAYWISER_DEVICE void each(std::uint32_t round, Function f) {
    for (std::uint32_t i = rounds_[round]; i < rounds_[round + 1]; ++i) f(instructions_[i]);
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

  const Instruction* const instructions_;
  const std::uint32_t* const rounds_;
};

}  // namespace waywiser::program
