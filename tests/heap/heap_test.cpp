#include "waywiser/heap/heap.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <span>

#include "tests/heap/heap_ranks.hpp"
#include "waywiser/base/error.hpp"

namespace waywiser {
namespace {

using one_sided::Comparison, one_sided::Scope, one_sided::SignalOp;

// Blocks of many sizes and alignments go around a ring, each with its signal; who waits for that sees the block.
TEST(Heap, PutsWithSignalsGoAroundARing) {
  for (const int size : {1, 2, 3})
    EXPECT_EQ(problems_of(size,
                          [](Group& group, Place place) {
                            const Heap heap(group, "ring", place, 65536);
                            std::string wrong;
                            run_kernel(group, heap, [&](const HostOneSided& ranks) {
                              const int right = (ranks.rank() + 1) % ranks.size(),
                                        left = (ranks.rank() + ranks.size() - 1) % ranks.size();
                              auto *signals = ranks.at<std::uint64_t>(0), *read = ranks.at<std::uint64_t>(64);
                              auto *given = ranks.at<std::uint8_t>(1024), *taken = ranks.at<std::uint8_t>(32768);
                              std::uint64_t turn = 0;
                              for (const std::uint64_t count : {0ull, 1ull, 7ull, 64ull, 1000ull, 20001ull})
                                for (const unsigned shift : {0u, 1u, 8u}) {
                                  ++turn;
                                  for (std::uint64_t i = 0; i < count; ++i)
                                    given[i] =
                                        static_cast<std::uint8_t>(i * 7 + turn + static_cast<unsigned>(ranks.rank()));
                                  ranks.put_with_signal<Scope::block>(taken + shift, given, count, signals, turn,
                                                                      SignalOp::set, right);
                                  ranks.wait_until<Scope::block>(signals, Comparison::eq, turn, left);
                                  for (std::uint64_t i = 0; i < count; ++i)
                                    if (taken[shift + i] !=
                                        static_cast<std::uint8_t>(i * 7 + turn + static_cast<unsigned>(left)))
                                      wrong = "byte " + std::to_string(i) + " of " + std::to_string(count);
                                  ranks.signal_add(read, 1, left);
                                  ranks.wait_until(read, Comparison::ge, turn, right);
                                }
                            });
                            require_that(wrong.empty(), wrong);
                          }),
              "")
        << size;
}

TEST(Heap, GetsReadWhatOtherRanksHaveStored) {
  EXPECT_EQ(
      problems_of(
          3,
          [](Group& group, Place place) {
            Heap heap(group, "gets", place, 4096);
            const auto fill = [](const HostOneSided& ranks) {
              for (int i = 0; i < 64; ++i) ranks.at<int>(0)[i] = 100 * ranks.rank() + i;
            };
            run_kernel(group, heap, fill);
            group.barrier();
            std::vector<int> seen(64), strided(8), later(4);
            int one = 0;
            run_kernel(group, heap, [&](const HostOneSided& ranks) {
              const int next = (ranks.rank() + 1) % 3;
              ranks.get<Scope::block>(seen.data(), ranks.at<int>(0), 64, next);
              ranks.iget(strided.data(), ranks.at<int>(0), 2, 3, 4, next);
              ranks.get_nbi<Scope::warp>(later.data(), ranks.at<int>(40), 4, next);
              ranks.quiet();
              one = ranks.g(ranks.at<int>(20), next);
              ranks.iput<Scope::warp>(ranks.at<int>(2048), seen.data(), 3, 2, 4, next);
              ranks.p(ranks.at<double>(3072), 0.5 + ranks.rank(), next);
            });
            const int base = 100 * ((group.rank() + 1) % 3);
            for (int i = 0; i < 64; ++i) require_that(seen[static_cast<std::size_t>(i)] == base + i, "the block");
            require_that(strided == std::vector<int>({base, 0, base + 3, 0, base + 6, 0, base + 9, 0}), "every third");
            require_that(later == std::vector<int>({base + 10, base + 11, base + 12, base + 13}), "what comes later");
            require_that(one == base + 5, "a word");
            group.barrier();
            std::vector<int> put(12);
            double value = 0;
            run_kernel(group, heap, [&](const HostOneSided& ranks) {
              ranks.get(put.data(), ranks.at<int>(2048), 12, ranks.rank());
              value = ranks.g(ranks.at<double>(3072), ranks.rank());
            });
            const int own = 100 * group.rank();  // the left rank has read this rank's block
            require_that(put == std::vector<int>({own, 0, 0, own + 2, 0, 0, own + 4, 0, 0, own + 6, 0, 0}),
                         "the strided put");
            require_that(value == 0.5 + (group.rank() + 2) % 3, "the double");
          }),
      "");
}

// All ranks work on the words of rank 0.
TEST(Heap, AtomicsLoseNothing) {
  constexpr std::uint64_t times = 500;
  EXPECT_EQ(
      problems_of(3,
                  [](Group& group, Place place) {
                    const Heap heap(group, "atomics", place, 4096);
                    run_kernel(group, heap, [](const HostOneSided& ranks) {
                      auto* words = ranks.at<std::uint64_t>(0);
                      auto* halves = ranks.at<std::uint32_t>(512);
                      const auto bit = static_cast<std::uint32_t>(ranks.rank());
                      for (std::uint64_t i = 0; i < times; ++i) {
                        ranks.atomic_add(words, 3, 0);
                        ranks.atomic_fetch_inc(halves, 0);
                        ranks.atomic_add(ranks.at<float>(1024), 0.25f, 0);
                        ranks.atomic_add(ranks.at<double>(1032), -0.5, 0);
                        for (std::uint64_t seen = ranks.atomic_fetch(words + 1, 0);;) {
                          const std::uint64_t before = ranks.atomic_compare_swap(words + 1, seen, seen + 2, 0);
                          if (before == seen) break;
                          seen = before;
                        }
                        ranks.atomic_fetch_xor(halves + 1, 1u << bit, 0);
                      }
                      ranks.atomic_fetch_or(halves + 2, 1u << bit, 0);
                      ranks.atomic_fetch_and(ranks.at<std::int64_t>(256), ~std::int64_t{0}, 0);
                      if (ranks.rank() == 0) ranks.atomic_set(words + 2, 9, 1);
                      if (ranks.rank() == 2) ranks.atomic_inc(words + 3, 1);
                    });
                    group.barrier();
                    if (group.rank() == 0) {
                      std::vector<std::uint64_t> sums(2);
                      std::vector<std::uint32_t> halves(3);
                      float quarter = 0;
                      double half = 0;
                      run_kernel(group, heap, [&](const HostOneSided& ranks) {
                        ranks.get(sums.data(), ranks.at<std::uint64_t>(0), 2, 0);
                        ranks.get(halves.data(), ranks.at<std::uint32_t>(512), 3, 0);
                        quarter = ranks.g(ranks.at<float>(1024), 0);
                        half = ranks.g(ranks.at<double>(1032), 0);
                      });
                      require_that(sums == std::vector<std::uint64_t>({9 * times, 6 * times}), "the sums");
                      require_that(halves == std::vector<std::uint32_t>({3 * times, 0, 7}), "the words of 4 bytes");
                      require_that(quarter == 0.25f * 3 * times && half == -0.5 * 3 * times, "the sums of floats");
                    }
                    if (group.rank() == 1) {
                      std::uint64_t swapped = 0, counted = 0;
                      run_kernel(group, heap, [&](const HostOneSided& ranks) {
                        swapped = ranks.atomic_swap(ranks.at<std::uint64_t>(16), 4, 1);
                        counted = ranks.g(ranks.at<std::uint64_t>(24), 1);
                      });
                      require_that(swapped == 9 && counted == 1, "what others have set");
                    }
                  }),
      "");
}

TEST(Heap, WaitsForSeveralWords) {
  EXPECT_EQ(problems_of(2,
                        [](Group& group, Place place) {
                          const Heap heap(group, "words", place, 4096);
                          std::string wrong;
                          run_kernel(group, heap, [&](const HostOneSided& ranks) {
                            auto* words = ranks.at<std::uint64_t>(0);
                            const auto need = [&](bool condition, const char* what) {
                              if (!condition && wrong.empty()) wrong = what;
                            };
                            if (ranks.rank() == 1) {
                              ranks.wait_until(words + 8, Comparison::eq, 1, 0);  // rank 0 has looked
                              for (const std::uint64_t i : {2ull, 0ull, 1ull, 3ull})
                                ranks.signal_set(words + i, i + 5, 0);
                              return;
                            }
                            const int without_second[] = {0, 1, 0, 0}, none[] = {1, 1, 1, 1};
                            std::uint64_t places[4] = {};
                            need(ranks.test_any(words, 4, nullptr, Comparison::ge, 5) == 4, "nothing has come");
                            need(!ranks.test_all(words, 4, nullptr, Comparison::ne, 0) &&
                                     ranks.test_all(words, 4, none, Comparison::ne, 0),
                                 "not all, and all of none");
                            need(ranks.wait_until_some(words, 4, places, none, Comparison::ge, 5) == 0, "some of none");
                            ranks.signal_set(words + 8, 1, 1);
                            const std::uint64_t any = ranks.wait_until_any(words, 4, without_second, Comparison::ge, 5);
                            need(any != 1 && any < 4 && words[any] == any + 5, "one that counts");
                            const std::uint64_t values[] = {5, 6, 7, 8};
                            ranks.wait_until_all_vector(words, 4, nullptr, Comparison::eq, values);
                            ranks.wait_until_all(words, 4, nullptr, Comparison::gt, 4);
                            const std::uint64_t some =
                                ranks.wait_until_some(words, 4, places, without_second, Comparison::lt, 8);
                            need(some == 2 && places[0] == 0 && places[1] == 2, "those below 8");
                            need(ranks.test_some(words, 4, places, nullptr, Comparison::le, 6) == 2, "those up to 6");
                          });
                          require_that(wrong.empty(), wrong);
                        }),
            "");
}

}  // namespace
}  // namespace waywiser
