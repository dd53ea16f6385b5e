#include "waywiser/comm/session/execution.hpp"

#include <gtest/gtest.h>

#include "tests/comm/test_ranks.hpp"
#include "tests/comm/two_runners.hpp"
#include "waywiser/base/error.hpp"
#include "waywiser/comm/session/in_call.hpp"
#include "waywiser/device/mapping.hpp"

namespace waywiser {
namespace {

// One of two ranks that run schedules made by hand.
class Runner {
 public:
  explicit Runner(const JoinOptions& options) : session_(std::make_shared<Session>(options)), execution_(*session_) {}

  int rank() const { return session_->rank(); }
  void run(Schedule schedule, ConstElements input, Elements output, ReduceOp op = ReduceOp::sum) {
    const Call call{CallKind::neighbor_exchange, input.type, op, 0, -1, -1, ++calls_, input.count()};
    const InCall in_call(*session_, call);
    const auto members = std::make_shared<const Members>(Members{0, rank(), {0, 1}});
    execution_.begin(members, call, std::make_shared<const Schedule>(std::move(schedule)), input, output);
    session_->wait(execution_);
  }

 private:
  std::shared_ptr<Session> session_;
  Execution execution_;
  std::uint64_t calls_ = 0;
};

// Each rank adds the other's values to its own: both have the sum.
Schedule sum_of_two(int rank, std::size_t count) {
  Schedule schedule{"by hand", rank, 2, count, count, 0, {}};
  const Block in{Area::input, 0, count}, out{Area::output, 0, count};
  schedule.steps = {{StepKind::copy, 0, -1, out, in},
                    {StepKind::send, 1, 1 - rank, {}, in},
                    {StepKind::receive_reduce, 1, 1 - rank, out, {}}};
  return schedule;
}

TEST(Execution, RunsAScheduleOfEveryTypeAndSize) {
  EXPECT_EQ(run_in_two<Runner>([](Runner& runner) {
              for (const std::size_t count : {1, 7, 4096, 100000}) {
                const std::vector<float> mine = made_by(runner.rank(), count);
                std::vector<float> sum(count);
                runner.run(sum_of_two(runner.rank(), count), std::span(mine), std::span(sum));
                const std::vector<float> theirs = made_by(1 - runner.rank(), count);
                for (std::size_t i = 0; i < count; ++i) require_that(sum[i] == mine[i] + theirs[i], "the sum");
                runner.run(sum_of_two(runner.rank(), count), std::span(mine), std::span(sum), ReduceOp::avg);
                require_that(sum[0] == 500, "the average");
              }
              std::vector<std::int8_t> small(3, static_cast<std::int8_t>(runner.rank() + 1)), product(3);
              runner.run(sum_of_two(runner.rank(), 3), std::span(small), std::span(product), ReduceOp::prod);
              require_that(product == std::vector<std::int8_t>(3, 2), "the product");
              std::vector<float> two(2);
              try {
                runner.run(sum_of_two(runner.rank(), 3), std::span(two), std::span(two));
                require_that(false, "a refusal");
              } catch (const Error& error) {
                require_that(std::string(error.what()).find("the arrays are shorter") != std::string::npos,
                             error.what());
              }
            }),
            no_problems);
}

// Arrays of more than 2^31 elements, of which only a page is touched.
TEST(Execution, OffsetsBeyond32Bits) {
  EXPECT_EQ(run_in_two<Runner>([](Runner& runner) {
              constexpr std::size_t far = (std::size_t{1} << 32) + 12345, count = 1000;
              const Mapping memory = Mapping::anonymous(far + count, "a sparse array");
              const int other = 1 - runner.rank();
              const auto sent = static_cast<std::byte>(runner.rank() + 1), expected = static_cast<std::byte>(other + 1);
              std::fill_n(memory.data() + far, count, sent);
              Schedule schedule{"by hand", runner.rank(), 2, far + count, far + count, count, {}};
              schedule.steps = {{StepKind::send, 0, other, {}, {Area::input, far, count}},
                                {StepKind::receive, 0, other, {Area::scratch, 0, count}, {}},
                                {StepKind::copy, 1, -1, {Area::output, far, count}, {Area::scratch, 0, count}}};
              const Elements all({memory.data(), far + count, host(0)}, DataType::uint8);
              runner.run(std::move(schedule), all, all);
              require_that(memory.data()[far] == expected && memory.data()[far + count - 1] == expected,
                           "the far elements");
            }),
            no_problems);
}

}  // namespace
}  // namespace waywiser
