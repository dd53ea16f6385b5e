#pragma once

// Messages by every protocol, of sizes around each threshold: on hosts and virtual GPUs (device_calls_test.cpp) and on
// GPUs (cuda/device_calls_on_gpus_test.cu).
#include "tests/heap/body_ranks.hpp"
#include "waywiser/heap/device/messages.hpp"

namespace waywiser::one_sided {

struct MessageCalls {
  static constexpr unsigned threads = 96;  // whole warps: blocks put lines
  static constexpr std::uint64_t area = 1 << 14, inbox_area = 1 << 14;
  static constexpr unsigned most_units = 40;  // the heap has room for no more

  // The same for messages of at most so many bytes by each protocol.
  template <Scope scope, typename Gpu>
  WAYWISER_DEVICE static void in_scope(const BodyRanks<Gpu>& body, Protocols protocols, std::uint64_t words_at) {
    if (body.ranks.has_proxy()) protocols.lines = 0;  // as the heap says
    HeapTerms terms = body.ranks.terms();
    terms.protocols = protocols;
    const OneSided<Gpu> ranks(body.ranks.gpu(), terms);
    body.template each_unit<scope>([&](unsigned unit) {
      // Of threads that make calls alone, one of each warp: nothing says that others of it go on while it waits.
      if (unit >= most_units || (scope == Scope::thread && unit % 32 != 0)) return;
      auto* read = body.template at<std::uint64_t>(words_at) + unit;
      const Inbox inbox{(3 << 20) + unit * inbox_area + 40, 6000};  // an inbox may begin anywhere
      const std::uint64_t counts[] = {0,   1,   8,   39,  40,   41,   42,   119,  120,  128,  239,  240,
                                      241, 480, 481, 999, 1000, 1001, 2999, 3000, 3001, 3600, 5999, 6000};
      const unsigned shifts[] = {0, 1, 8, 0}, own_shifts[] = {0, 4, 16, 16};
      std::uint64_t number = (std::uint64_t{words_at} << 32) - 10;  // beyond 32 bits
      std::uint64_t turn = 0;
      for (const std::uint64_t count : counts)
        for (unsigned i = 0; i < 4; ++i)
          one<scope>(body, ranks, inbox, {unit, shifts[i], own_shifts[i]}, count, ++number, ++turn, read);
    });
    body.barrier();
  }
  template <typename Gpu>
  WAYWISER_DEVICE static void run(const BodyRanks<Gpu>& body) {
    const Protocols all{40, 1000, 3000}, no_lines{40, 0, 3000}, lines{0, 6000, ~0ull}, packets{6000, 0, ~0ull};
    in_scope<Scope::thread>(body, all, 4096);
    in_scope<Scope::warp>(body, all, 8192);
    in_scope<Scope::block>(body, all, 12288);
    in_scope<Scope::block>(body, no_lines, 16384);
    in_scope<Scope::warp>(body, lines, 20480);
    in_scope<Scope::block>(body, lines, 24576);
    in_scope<Scope::block>(body, packets, 28672);
  }

 private:
  struct Where {
    unsigned unit, shift, own_shift;
  };
  template <Scope scope, typename Gpu>
  WAYWISER_DEVICE static void one(const BodyRanks<Gpu>& body, const OneSided<Gpu>& ranks, const Inbox& inbox,
                                  const Where& where, std::uint64_t count, std::uint64_t number, std::uint64_t turn,
                                  std::uint64_t* read) {
    auto* given = body.template at<std::uint8_t>((1 << 16) + where.unit * area) + where.own_shift;
    auto* taken = body.template at<std::uint8_t>((2 << 20) - (1 << 18) + where.unit * area) + where.shift;
    body.template each<scope>(count,
                              [&](std::uint64_t i) { given[i] = body_value<std::uint8_t>(body.rank(), i, turn); });
    if (ranks.gpu().index_in(scope) == 0) taken[count] = 200;
    put_message<scope>(ranks, inbox, taken, given, count, number, body.right());
    wait_message<scope>(ranks, inbox, taken, count, number, body.left());
    body.template each<scope>(
        count, [&](std::uint64_t i) { body.need(taken[i], body_value<std::uint8_t>(body.left(), i, turn), i); });
    body.need(taken[count], 200, count);
    ranks.template fence<scope>();
    if (ranks.gpu().index_in(scope) == 0) ranks.signal_add(read, 1, body.left());
    ranks.template wait_until<scope>(read, Comparison::ge, turn, body.right());
  }
};

}  // namespace waywiser::one_sided
