// Windows of host memory, under every order in which one-sided accesses are carried out.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>

#include "tests/explorer/expect.hpp"
#include "tests/explorer/one_sided.hpp"
#include "waywiser/comm/windows/host_window.hpp"

namespace waywiser::explorer {
namespace {

using Words = std::array<std::uint64_t, 3>;
constexpr Bytes word = sizeof(std::uint64_t);
constexpr Bytes flag_at = 2 * word;

Region region(void* data, Bytes bytes) { return {static_cast<std::byte*>(data), bytes, host(0)}; }

// All ranks of one exchange.
class Gathering {
 public:
  Gathering(Course& course, std::size_t ranks) : course_(course), given_(ranks) {}

  struct Rank final : RankExchange {
    Rank(Gathering& all, std::size_t rank) : all_(all), rank_(rank) {}
    void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) override {
      all_.given_[rank_].assign(mine.begin(), mine.end());
      all_.course_.changed();
      for (std::size_t other = 0; other < all_.given_.size(); ++other) {
        while (all_.given_[other].empty()) all_.course_.idle();
        std::ranges::copy(all_.given_[other], all.begin() + static_cast<std::ptrdiff_t>(other * mine.size()));
      }
    }
    void broadcast(std::span<std::byte>, int) override { all_.course_.fail("no window broadcasts"); }

   private:
    Gathering& all_;
    std::size_t rank_;
  };

 private:
  Course& course_;
  std::vector<std::vector<std::byte>> given_;
};

// How the writer says that its data are there.
enum class Says { signal, put, flush_and_put };

// Rank 0 puts two words into the memory of rank 1, then sets a flag there; rank 1 waits for it.
class WindowCalls {
 public:
  explicit WindowCalls(Course& course) : course_(course), ucx_(course), network_(course), gathering_(course, 2) {
    for (int rank = 0; rank < 2; ++rank) sessions_.push_back(std::make_unique<Session>(network_, rank, course, ucx_));
  }

  void go(Says says) {
    course_.thread("writer", [this, says] { write(says); });
    course_.thread("reader", [this] { read(); });
    course_.thread("UCX", [this] { ucx_.carry(); }, true);
    course_.go();
    course_.require(ucx_.is_empty(), "an access is under way");
  }

 private:
  static Call call(CallKind kind, int peer) { return {kind, DataType::uint8, ReduceOp::sum, 0, -1, peer, 1, word}; }
  HostWindow window(int rank) {
    Gathering::Rank exchange(gathering_, static_cast<std::size_t>(rank));
    Words& memory = memory_[static_cast<std::size_t>(rank)];
    return HostWindow(*sessions_[static_cast<std::size_t>(rank)], {0, rank, {0, 1}}, region(&memory, sizeof memory),
                      exchange);
  }

  void write(Says says) {
    HostWindow window = this->window(0);
    std::uint64_t value = 0;
    const auto put = [&](Bytes offset, std::uint64_t what) {
      value = what;
      window.put(call(CallKind::put, 1), offset, region(&value, word));
      value = 99;  // the caller may use its memory again
    };
    put(0, 1);
    put(word, 2);
    if (says == Says::flush_and_put) flush_puts(*sessions_[0], call(CallKind::put, 1), 1);
    if (says == Says::signal)
      window.signal(call(CallKind::signal, 1), flag_at, 1);
    else
      put(flag_at, 1);
    while (!is_read_) course_.idle();
  }

  // Reads its own memory, and that of the writer.
  void read() {
    HostWindow window = this->window(1);
    memory_[0][0] = 7;
    while (memory_[1][2] == 0) course_.idle();
    course_.require(memory_[1] == Words{1, 2, 1}, "the flag was there before the data");
    std::uint64_t got = 0;
    window.get(call(CallKind::get, 0), 0, region(&got, word));
    course_.require(got == 7, "other bytes have been read");
    is_read_ = true;
    course_.changed();
  }

  Course& course_;
  OneSided ucx_;
  Network network_;
  Gathering gathering_;
  std::vector<std::unique_ptr<Session>> sessions_;
  std::array<Words, 2> memory_{};
  bool is_read_ = false;
};

// Two words that overtake each other cost four deviations: APutMayOvertakeAnother.
constexpr Bounds bounds{.deviations = 4, .switches_cost = true};

TEST(ExploredWindows, ASignalArrivesAfterThePuts) {
  expect_no_problem("two puts and a signal", [](Course& course) { WindowCalls(course).go(Says::signal); }, bounds);
}

TEST(ExploredWindows, WhatWasFlushedHasArrived) {
  expect_no_problem(
      "two puts, a flush and a put", [](Course& course) { WindowCalls(course).go(Says::flush_and_put); }, bounds);
}

TEST(ExploredWindows, APutMayOvertakeAnother) {
  const Result found = explore([](Course& course) { WindowCalls(course).go(Says::put); }, bounds);
  EXPECT_EQ(found.problem, "reader: the flag was there before the data");
}

}  // namespace
}  // namespace waywiser::explorer
