#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "tests/c/error_text.hpp"
#include "waywiser/c/handles.hpp"
#include "waywiser/c/waywiser.h"

namespace waywiser {
namespace {

// A group of one rank, with a virtual GPU.
class CGroup : public testing::Test {
 protected:
  void SetUp() override {
    ww_join_options options{};
    options.size = sizeof options;
    options.timeout = 20;
    options.virtual_gpus = 1;
    ASSERT_EQ(ww_join(&options, &group_), WW_OK) << c_error_text();
  }
  void TearDown() override {
    EXPECT_EQ(ww_close(group_), WW_OK) << c_error_text();
    ww_group_free(group_);
  }
  static void expect_refused(int code, const std::string& words) {
    EXPECT_EQ(code, WW_INVALID_INPUT) << words;
    EXPECT_NE(c_error_text().find(words), std::string::npos) << c_error_text();
  }

  ww_group* group_ = nullptr;
};

TEST_F(CGroup, NullIsRefusedByEveryFunctionThatNeedsMore) {
  double x[4] = {};
  const std::size_t one[] = {1};
  std::size_t bytes = 0;
  int done = 0;
  void* memory = nullptr;
  ww_group* part = nullptr;
  ww_window* window = nullptr;
  ww_prepared* prepared = nullptr;
  ww_stream* stream = nullptr;
  ww_future* future = nullptr;
  ww_message_status status{};
  ww_message* message = nullptr;
  const std::vector<std::function<int(ww_group*)>> of_groups = {
      [&](auto g) { return ww_close(g); },
      [&](auto g) { return ww_abort(g, "why"); },
      [&](auto g) { return ww_split(g, 0, 0, &part); },
      [&](auto g) { return ww_split_apart(g, 0, 0, &part); },
      [&](auto g) { return ww_set_timeout(g, 1); },
      [&](auto g) { return ww_send(g, x, 1, WW_FLOAT64, 0, 0, WW_WAIT); },
      [&](auto g) { return ww_recv(g, x, 1, WW_FLOAT64, 0, 0, WW_WAIT); },
      [&](auto g) { return ww_recv_status(g, x, 1, WW_FLOAT64, 0, 0, &status, WW_WAIT); },
      [&](auto g) { return ww_recv_status(g, x, 1, WW_FLOAT64, 0, 0, &status, ww_begin(&future)); },
      [&](auto g) { return ww_probe(g, 0, 0, &status); },
      [&](auto g) { return ww_mprobe(g, 0, 0, 0, &status, &message); },
      [&](auto g) { return ww_iprobe(g, 0, 0, 0, &done, &status); },
      [&](auto g) { return ww_sendrecv(g, x, 1, 0, x + 1, 1, 0, WW_FLOAT64, 0, WW_WAIT); },
      [&](auto g) { return ww_neighbor_exchange(g, nullptr, 0, WW_WAIT); },
      [&](auto g) { return ww_barrier(g, WW_WAIT); },
      [&](auto g) { return ww_broadcast(g, x, 1, WW_FLOAT64, 0, WW_WAIT); },
      [&](auto g) { return ww_reduce(g, x, x, 1, WW_FLOAT64, WW_SUM, 0, WW_WAIT); },
      [&](auto g) { return ww_all_reduce(g, x, x, 1, WW_FLOAT64, WW_SUM, WW_WAIT); },
      [&](auto g) { return ww_reduce_scatter(g, x, x, 1, WW_FLOAT64, WW_SUM, WW_WAIT); },
      [&](auto g) { return ww_all_gather(g, x, x + 1, 1, WW_FLOAT64, WW_WAIT); },
      [&](auto g) { return ww_all_to_all(g, x, x + 1, 1, WW_FLOAT64, WW_WAIT); },
      [&](auto g) { return ww_gather(g, x, x + 1, 1, WW_FLOAT64, 0, WW_WAIT); },
      [&](auto g) { return ww_scatter(g, x, x + 1, 1, WW_FLOAT64, 0, WW_WAIT); },
      [&](auto g) { return ww_all_gather_v(g, x, x + 1, one, WW_FLOAT64, WW_WAIT); },
      [&](auto g) { return ww_all_to_all_v(g, x, one, x + 1, one, WW_FLOAT64, WW_WAIT); },
      [&](auto g) { return ww_gather_v(g, x, x + 1, one, WW_FLOAT64, 0, WW_WAIT); },
      [&](auto g) { return ww_scatter_v(g, x, one, x + 1, WW_FLOAT64, 0, WW_WAIT); },
      [&](auto g) { return ww_expose(g, x, 8, &window); },
      [&](auto g) { return ww_flush(g); },
      [&](auto g) { return ww_prepare_exchange(g, nullptr, 0, &prepared); },
      [&](auto g) { return ww_prepare_collective(g, "scan", x, x, 1, WW_FLOAT64, WW_SUM, 0, &prepared); },
      [&](auto g) { return ww_stream_borrow(g, 0, nullptr, &stream); },
      [&](auto g) { return ww_stream_create(g, 0, &stream); },
      [&](auto g) { return ww_stream_synchronize(g, nullptr); },
      [&](auto g) { return ww_gpu_allocate(g, 0, 8, &memory); },
      [&](auto g) { return ww_gpu_free(g, x); },
      [&](auto g) { return ww_gpu_copy(g, x, x + 1, 8); },
      [&](auto g) { return ww_gpu_prepare(g, 0, 8); }};
  for (std::size_t i = 0; i < of_groups.size(); ++i) {
    SCOPED_TRACE("function " + std::to_string(i));
    expect_refused(of_groups[i](nullptr), "the group is NULL");
  }
  const std::vector<std::function<int()>> others = {
      [&] { return ww_join(nullptr, nullptr); },
      [&] { return ww_abort(group_, nullptr); },
      [&] { return ww_split(group_, 0, 0, nullptr); },
      [&] { return ww_split_apart(group_, 0, 0, nullptr); },
      [&] { return ww_neighbor_exchange(group_, nullptr, 1, WW_WAIT); },
      [&] { return ww_send(group_, nullptr, 1, WW_FLOAT64, 0, 0, WW_WAIT); },
      [&] { return ww_all_reduce(group_, x, nullptr, 1, WW_FLOAT64, WW_SUM, WW_WAIT); },
      [&] { return ww_all_gather_v(group_, x, x + 1, nullptr, WW_FLOAT64, WW_WAIT); },
      [&] { return ww_all_to_all_v(group_, x, nullptr, x + 1, one, WW_FLOAT64, WW_WAIT); },
      [&] { return ww_all_to_all_v(group_, x, one, x + 1, nullptr, WW_FLOAT64, WW_WAIT); },
      [&] { return ww_gather_v(group_, x, x + 1, nullptr, WW_FLOAT64, 0, WW_WAIT); },
      [&] { return ww_scatter_v(group_, x, nullptr, x + 1, WW_FLOAT64, 0, WW_WAIT); },
      [&] { return ww_future_test(nullptr, &done); },
      [&] { return ww_future_wait(nullptr); },
      [&] { return ww_expose(group_, x, 8, nullptr); },
      [&] { return ww_expose(group_, nullptr, 8, &window); },
      [&] { return ww_window_bytes(nullptr, 0, &bytes); },
      [&] { return ww_put(nullptr, x, 8, 0, 0); },
      [&] { return ww_get(nullptr, x, 8, 0, 0); },
      [&] { return ww_signal(nullptr, 0, 0, 1); },
      [&] { return ww_wait_signal(nullptr, 0, 1); },
      [&] { return ww_recv_status(group_, x, 1, WW_FLOAT64, 0, 0, nullptr, WW_WAIT); },
      [&] { return ww_recv_status(group_, x, 1, WW_FLOAT64, 0, 0, nullptr, ww_begin(&future)); },
      [&] { return ww_probe(group_, 0, 0, nullptr); },
      [&] { return ww_iprobe(group_, 0, 0, 0, nullptr, &status); },
      [&] { return ww_mprobe(group_, 0, 0, 0, nullptr, &message); },
      [&] { return ww_mprobe(group_, 0, 0, 0, &status, nullptr); },
      [&] { return ww_mrecv(nullptr, x, 1, WW_FLOAT64); },
      [&] { return ww_iprobe(group_, 0, 0, 0, &done, nullptr); },
      [&] { return ww_prepare_exchange(group_, nullptr, 0, nullptr); },
      [&] { return ww_prepare_exchange(group_, nullptr, 1, &prepared); },
      [&] { return ww_prepare_collective(group_, nullptr, x, x, 1, WW_FLOAT64, WW_SUM, 0, &prepared); },
      [&] { return ww_prepare_collective(group_, "scan", nullptr, x, 1, WW_FLOAT64, WW_SUM, 0, &prepared); },
      [&] { return ww_prepare_collective(group_, "scan", x, x, 1, WW_FLOAT64, WW_SUM, 0, nullptr); },
      [&] { return ww_prepared_start(nullptr, nullptr); },
      [&] { return ww_prepared_wait(nullptr); },
      [&] { return ww_stream_borrow(group_, 0, nullptr, nullptr); },
      [&] { return ww_stream_create(group_, 0, nullptr); },
      [&] { return ww_stream_synchronize(group_, nullptr); },
      [&] { return ww_gpu_allocate(group_, 0, 8, nullptr); },
      [&] { return ww_gpu_copy(group_, nullptr, x, 8); },
      [&] { return ww_gpu_copy(group_, x, nullptr, 8); }};
  for (std::size_t i = 0; i < others.size(); ++i) {
    SCOPED_TRACE("other " + std::to_string(i));
    expect_refused(others[i](), "NULL");
  }
  EXPECT_EQ(part, nullptr);
  EXPECT_EQ(window, nullptr);
  EXPECT_EQ(prepared, nullptr);
  EXPECT_EQ(stream, nullptr);
  EXPECT_EQ(memory, nullptr);
  EXPECT_EQ(future, nullptr);
  EXPECT_EQ(message, nullptr);
  ww_message_free(nullptr);
  ww_future_free(nullptr);
  ww_window_free(nullptr);
  ww_prepared_free(nullptr);
  ww_stream_free(nullptr);
  ww_group_free(nullptr);
  EXPECT_EQ(ww_gpu_free(nullptr, nullptr), WW_OK);
}

// Two numbers, and two of which one is the same, in host memory and on the GPU; the numbers stay as they were.
TEST_F(CGroup, ArraysThatOverlapAreRefusedByEveryCall) {
  const double had[3] = {1, 2, 3};
  const std::size_t two[] = {2};
  void* memory = nullptr;
  ASSERT_EQ(ww_gpu_allocate(group_, 0, sizeof had, &memory), WW_OK) << c_error_text();
  double on_host[3] = {1, 2, 3};
  ww_stream* stream = nullptr;
  ASSERT_EQ(ww_stream_create(group_, 0, &stream), WW_OK) << c_error_text();
  ASSERT_EQ(ww_barrier(group_, {nullptr, stream}), WW_OK) << c_error_text();  // sets the GPU up
  for (double* const x : {on_host, static_cast<double*>(memory)}) {
    ASSERT_EQ(x == on_host ? WW_OK : ww_gpu_copy(group_, x, had, sizeof had), WW_OK) << c_error_text();
    double* const y = x + 1;
    ww_exchange around{};
    around.give = x;
    around.take = y;
    around.give_count = around.take_count = 2;
    around.give_type = around.take_type = WW_FLOAT64;
    ww_prepared* prepared = nullptr;
    expect_refused(ww_prepare_exchange(group_, &around, 1, &prepared), "overlaps");
    ww_window* window = nullptr;
    ASSERT_EQ(ww_expose(group_, x, sizeof had, &window), WW_OK) << c_error_text();
    expect_refused(ww_put(window, x, 2 * sizeof *x, 0, sizeof *x), "overlap");
    expect_refused(ww_get(window, x, 2 * sizeof *x, 0, sizeof *x), "overlap");
    ww_window_free(window);
    ww_future* future = nullptr;
    for (const ww_mode mode : {WW_WAIT, ww_begin(&future), ww_mode{nullptr, stream}}) {
      if (x == on_host && mode.stream != nullptr) continue;
      for (const int code :
           {ww_reduce(group_, x, y, 2, WW_FLOAT64, WW_SUM, 0, mode),
            ww_all_reduce(group_, x, y, 2, WW_FLOAT64, WW_SUM, mode),
            ww_reduce_scatter(group_, x, y, 2, WW_FLOAT64, WW_SUM, mode),
            ww_all_gather(group_, x, y, 2, WW_FLOAT64, mode), ww_all_to_all(group_, x, y, 2, WW_FLOAT64, mode),
            ww_gather(group_, x, y, 2, WW_FLOAT64, 0, mode), ww_scatter(group_, x, y, 2, WW_FLOAT64, 0, mode),
            ww_all_gather_v(group_, x, y, two, WW_FLOAT64, mode),
            ww_all_to_all_v(group_, x, two, y, two, WW_FLOAT64, mode),
            ww_gather_v(group_, x, y, two, WW_FLOAT64, 0, mode), ww_scatter_v(group_, x, two, y, WW_FLOAT64, 0, mode),
            ww_sendrecv(group_, x, 2, 0, y, 2, 0, WW_FLOAT64, 0, mode), ww_neighbor_exchange(group_, &around, 1, mode)})
        expect_refused(code, "overlap");
      EXPECT_EQ(future, nullptr);
      ASSERT_EQ(ww_all_reduce(group_, x, x, 3, WW_FLOAT64, WW_SUM, WW_WAIT), WW_OK) << c_error_text();
    }
    double now[3] = {};
    ASSERT_EQ(x == on_host ? WW_OK : ww_gpu_copy(group_, now, x, sizeof now), WW_OK) << c_error_text();
    if (x == on_host) std::copy_n(x, 3, now);
    EXPECT_TRUE(std::equal(now, now + 3, had));
  }
  ww_stream_free(stream);
  EXPECT_EQ(ww_gpu_free(group_, memory), WW_OK) << c_error_text();
}

TEST_F(CGroup, WrongArgumentsAreRefusedAndTheGroupGoesOn) {
  double x[2] = {1, 2}, y = 0;
  const std::size_t too_many = std::numeric_limits<std::size_t>::max() / 4;
  expect_refused(ww_all_reduce(group_, x, &y, 1, WW_FLOAT64, static_cast<ww_op>(17), WW_WAIT),
                 "there is no operation 17");
  expect_refused(ww_all_reduce(group_, x, &y, too_many, WW_FLOAT64, WW_SUM, WW_WAIT), "more than there can be");
  expect_refused(ww_send(group_, x, 1, WW_FLOAT64, 1, 0, WW_WAIT), "rank 1");
  expect_refused(ww_send(group_, x, 1, WW_FLOAT64, 0, -1, WW_WAIT), "tag -1");
  expect_refused(ww_set_timeout(group_, -1), "timeout");
  ww_future* future = nullptr;
  ww_stream* stream = nullptr;
  ASSERT_EQ(ww_stream_create(group_, 0, &stream), WW_OK) << c_error_text();
  const ww_mode both = {&future, stream};
  expect_refused(ww_all_reduce(group_, x, &y, 1, WW_FLOAT64, WW_SUM, both), "not both");
  EXPECT_EQ(future, nullptr);
  ww_stream_free(stream);
  expect_refused(ww_gpu_free(group_, x), "not from ww_gpu_allocate");
  void* memory = x;
  EXPECT_EQ(ww_gpu_allocate(group_, 3, 8, &memory), WW_UNAVAILABLE);
  EXPECT_EQ(memory, x) << "an output is set only with WW_OK";
  ww_join_options options{};
  options.size = 7;
  ww_group* other = nullptr;
  expect_refused(ww_join(&options, &other), "of 7 bytes");
  options.size = sizeof options;
  options.max_ctas = -1;
  expect_refused(ww_join(&options, &other), "max_ctas is -1");
  EXPECT_EQ(other, nullptr);

  ASSERT_EQ(ww_all_reduce(group_, x, &y, 1, WW_FLOAT64, WW_SUM, WW_WAIT), WW_OK) << c_error_text();
  EXPECT_EQ(y, 1);
}

bool is_of(const ww_message_status& status, int tag, ww_type type, std::size_t count) {
  return status.source == 0 && status.tag == tag && status.type == type && status.count == count;
}

// The status of a call that has only begun is told by the future.
TEST_F(CGroup, MessagesOfAnyRankHaveAStatus) {
  const double x[3] = {1, 2, 3};
  double y[5] = {};
  ww_message_status status{};
  ww_future* future = nullptr;
  int found = 1, done = 0;
  ASSERT_EQ(ww_iprobe(group_, WW_ANY_SOURCE, WW_ANY_TAG, 0, &found, &status), WW_OK) << c_error_text();
  EXPECT_EQ(found, 0);
  const auto send = [&](int tag) { return ww_send(group_, x, 3, WW_FLOAT64, 0, tag, WW_WAIT); };
  ASSERT_EQ(send(4), WW_OK) << c_error_text();
  ASSERT_EQ(ww_probe(group_, WW_ANY_SOURCE, WW_ANY_TAG, &status), WW_OK) << c_error_text();
  EXPECT_TRUE(is_of(status, 4, WW_FLOAT64, 3));
  ASSERT_EQ(ww_recv_status(group_, y, 5, WW_FLOAT64, WW_ANY_SOURCE, WW_ANY_TAG, &(status = {}), WW_WAIT), WW_OK);
  EXPECT_TRUE(is_of(status, 4, WW_FLOAT64, 3) && y[2] == 3);

  for (const bool waits : {true, false}) {
    ASSERT_EQ(ww_recv_status(group_, y, 5, WW_FLOAT64, WW_ANY_SOURCE, 6, &(status = {}), ww_begin(&future)), WW_OK);
    ASSERT_EQ(ww_future_test(future, &done), WW_OK) << c_error_text();
    EXPECT_TRUE(done == 0 && status.count == 0);
    ASSERT_EQ(send(6), WW_OK) << c_error_text();
    if (waits) {
      ASSERT_EQ(ww_future_wait(future), WW_OK) << c_error_text();
    }
    while (done == 0) ASSERT_EQ(ww_future_test(future, &done), WW_OK) << c_error_text();
    EXPECT_TRUE(is_of(status, 6, WW_FLOAT64, 3));
    ww_future_free(std::exchange(future, nullptr));
  }
  ASSERT_EQ(send(7), WW_OK) << c_error_text();
  ASSERT_EQ(ww_recv(group_, y, 3, WW_FLOAT64, WW_ANY_SOURCE, WW_ANY_TAG, WW_WAIT), WW_OK) << c_error_text();
  expect_refused(ww_probe(group_, -1, 0, &status), "rank -1");
  expect_refused(ww_iprobe(group_, 0, 0, -1, &found, &status), "patience");
}

TEST_F(CGroup, MemoryOfAGpuIsKnownByItsAddress) {
  void* memory = nullptr;
  ASSERT_EQ(ww_gpu_allocate(group_, 0, 2 * sizeof(double), &memory), WW_OK) << c_error_text();
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory) % 256, 0u);
  const double x[2] = {3, 4};
  double y[2] = {};
  ASSERT_EQ(ww_gpu_copy(group_, memory, x, sizeof x), WW_OK) << c_error_text();
  EXPECT_TRUE(elements(*group_, memory, 2, WW_FLOAT64).region.place.is_gpu());
  EXPECT_FALSE(elements(*group_, y, 2, WW_FLOAT64).region.place.is_gpu());
  ASSERT_EQ(ww_all_reduce(group_, memory, memory, 2, WW_FLOAT64, WW_SUM, WW_WAIT), WW_OK) << c_error_text();
  ASSERT_EQ(ww_gpu_copy(group_, y, memory, sizeof y), WW_OK) << c_error_text();
  EXPECT_EQ(y[1], 4);
  ASSERT_EQ(ww_gpu_free(group_, memory), WW_OK) << c_error_text();
  expect_refused(ww_gpu_free(group_, memory), "it has been freed");
}

}  // namespace
}  // namespace waywiser
