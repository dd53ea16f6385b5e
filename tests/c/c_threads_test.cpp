// Threads of a C program that use a rank at once.
#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <string>
#include <thread>

#include "waywiser/c/handles.hpp"
#include "waywiser/group/inside.hpp"

namespace waywiser {
namespace {

// A group of one rank; a thread waits in a part of it until it is let go.
class CThreads : public testing::Test {
 protected:
  void join(bool threads) {
    ww_join_options options{};
    options.size = sizeof options;
    options.timeout = 60;
    options.threads = threads ? 1 : 0;
    ASSERT_EQ(ww_join(&options, &group_), WW_OK) << ww_error_text();
    ASSERT_EQ(ww_split(group_, 0, 0, &part_), WW_OK) << ww_error_text();
    ASSERT_EQ(ww_expose(part_, &flag_, sizeof flag_, &window_), WW_OK) << ww_error_text();
    waiter_ = std::thread([this] { waited_ = ww_wait_signal(window_, 0, 1); });
    while (current_call(part_->group).kind != CallKind::wait) ::sched_yield();
  }
  void let_go() {
    std::atomic_ref(flag_).store(1);
    waiter_.join();
    EXPECT_EQ(waited_, WW_OK) << "the call that was met";
  }
  void TearDown() override {
    ww_window_free(window_);
    EXPECT_EQ(ww_close(group_), WW_OK) << ww_error_text();
    ww_group_free(part_);
    ww_group_free(group_);
  }
  static void expect_refused(int code) {
    EXPECT_EQ(code, WW_INVALID_INPUT);
    EXPECT_NE(std::string(ww_error_text()).find("another thread is in "), std::string::npos) << ww_error_text();
  }

  ww_group *group_ = nullptr, *part_ = nullptr;
  ww_window* window_ = nullptr;
  std::uint64_t flag_ = 0;
  int waited_ = -1;
  std::thread waiter_;
  double x_ = 3, sum_ = 0;
};

TEST_F(CThreads, ASecondThreadIsRefused) {
  join(false);
  ww_group* other = nullptr;
  ww_future* future = nullptr;
  for (ww_group* group : {group_, part_}) {
    expect_refused(ww_all_reduce(group, &x_, &sum_, 1, WW_FLOAT64, WW_SUM, WW_WAIT));
    expect_refused(ww_all_reduce(group, &x_, &sum_, 1, WW_FLOAT64, WW_SUM, ww_begin(&future)));
    expect_refused(ww_send(group, &x_, 1, WW_FLOAT64, 0, 0, WW_WAIT));
    expect_refused(ww_barrier(group, WW_WAIT));
    expect_refused(ww_split(group, 0, 0, &other));
    expect_refused(ww_set_timeout(group, 1));
    expect_refused(ww_close(group));
  }
  expect_refused(ww_put(window_, &x_, 8, 0, 0));
  EXPECT_EQ(future, nullptr);
  let_go();
  EXPECT_EQ(ww_all_reduce(group_, &x_, &sum_, 1, WW_FLOAT64, WW_SUM, WW_WAIT), WW_OK);
  EXPECT_EQ(sum_, 3);
}

TEST_F(CThreads, ThreadsThatShareTheRankUseGroupsOfTheirOwn) {
  join(true);
  EXPECT_EQ(ww_all_reduce(group_, &x_, &sum_, 1, WW_FLOAT64, WW_SUM, WW_WAIT), WW_OK) << ww_error_text();
  EXPECT_EQ(sum_, 3);
  expect_refused(ww_all_reduce(part_, &x_, &sum_, 1, WW_FLOAT64, WW_SUM, WW_WAIT));
  let_go();
}

}  // namespace
}  // namespace waywiser
