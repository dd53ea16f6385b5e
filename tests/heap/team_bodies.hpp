#pragma once

#include "tests/heap/body_ranks.hpp"
#include "waywiser/heap/device/team.hpp"

namespace waywiser::one_sided {

// All collectives of the team, twice without anything between.
struct TeamCalls {
  template <typename T, typename Gpu>
  WAYWISER_DEVICE static void of_type(const BodyRanks<Gpu>& body, std::uint64_t turn) {
    const Team<Gpu> team(body.ranks, body.terms.team);
    const auto parts = static_cast<std::uint64_t>(team.size());
    auto *source = body.template at<T>(4096), *told = body.template at<T>(1 << 16);
    auto *gathered = body.template at<T>(1 << 17), *turned = body.template at<T>(1 << 18);
    auto* sums = body.template at<T>(1 << 19);
    const std::uint64_t counts[] = {1, 213};
    for (const std::uint64_t count : counts) {
      const auto of = [&](std::uint64_t member, std::uint64_t i) {
        return body_value<T>(static_cast<int>(member), i, turn + count);
      };
      const auto me = static_cast<std::uint64_t>(team.rank());
      body.template each<Scope::block>(count * parts, [&](std::uint64_t i) { source[i] = of(me, i); });
      const int root = static_cast<int>((turn + count) % parts);
      team.broadcast(told, source, count, root);
      team.all_gather(gathered, source, count);
      team.all_to_all(turned, source, count);
      body.template each<Scope::block>(
          count, [&](std::uint64_t i) { body.need(told[i], of(static_cast<std::uint64_t>(root), i), i); });
      body.template each<Scope::block>(count * parts, [&](std::uint64_t i) {
        body.need(gathered[i], of(i / count, i % count), i);
        body.need(turned[i], of(i / count, me * count + i % count), i);
      });
      const TeamOp ops[] = {TeamOp::sum,     TeamOp::product, TeamOp::minimum, TeamOp::maximum,
                            TeamOp::bit_and, TeamOp::bit_or,  TeamOp::bit_xor};
      for (int op = 0; op < (std::is_integral_v<T> ? 7 : 4); ++op) {
        team.reduce(sums, source, count, ops[op]);
        body.template each<Scope::block>(count, [&](std::uint64_t i) {
          T wanted = of(0, i);
          for (std::uint64_t member = 1; member < parts; ++member) wanted = combined(ops[op], wanted, of(member, i));
          body.need(sums[i], wanted, i);
        });
      }
    }
  }
  // By the first warp, thread, or all of the block, in place.
  template <Scope scope, typename T, typename Gpu>
  WAYWISER_DEVICE static void in_place(const BodyRanks<Gpu>& body) {
    constexpr std::uint64_t count = 37;
    auto* numbers = body.template at<T>(1 << 18);
    body.barrier();
    if (scope == Scope::block || body.ranks.gpu().index_in(Scope::block) < (scope == Scope::warp ? 32u : 1u)) {
      const Team<Gpu, scope> team(body.ranks, body.terms.team);
      body.template each<scope>(count, [&](std::uint64_t i) { numbers[i] = body_value<T>(body.rank(), i, 9); });
      team.reduce(numbers, numbers, count, TeamOp::sum);
      body.template each<scope>(count, [&](std::uint64_t i) {
        T wanted = body_value<T>(0, i, 9);
        for (int rank = 1; rank < team.size(); ++rank)
          wanted = combined(TeamOp::sum, wanted, body_value<T>(rank, i, 9));
        body.need(numbers[i], wanted, i);
      });
      team.barrier();
    }
    body.barrier();
  }
  template <typename Gpu>
  WAYWISER_DEVICE static void run(const BodyRanks<Gpu>& body) {
    in_place<Scope::thread, std::uint8_t>(body);
    in_place<Scope::warp, std::uint16_t>(body);
    in_place<Scope::warp, double>(body);
    in_place<Scope::block, std::int16_t>(body);
    in_place<Scope::block, float>(body);
    of_type<std::uint64_t>(body, 1);
    of_type<std::int32_t>(body, 2);
    of_type<float>(body, 3);
    of_type<double>(body, 4);
    // What is stored before sync() is there after it.
    const Team<Gpu> team(body.ranks, body.terms.team);
    auto* word = body.template at<std::uint64_t>(1 << 20);
    for (std::uint64_t turn = 1; turn <= body.terms.turns; ++turn) {
      body.template each<Scope::block>(body.threads(), [&](std::uint64_t i) { word[turn % 2 * 128 + i] = turn + i; });
      team.sync();
      body.template each<Scope::block>(body.threads(), [&](std::uint64_t i) {
        body.need(body.ranks.g(word + turn % 2 * 128 + i, body.right()), turn + i, i);
      });
    }
  }
};

}  // namespace waywiser::one_sided
