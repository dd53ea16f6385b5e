// Every way of a collective on GPUs gives the same; the plan and the links say which is taken.
#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <vector>

#include "tests/comm/test_ranks.hpp"
#include "tests/group/compared_calls.hpp"
#include "tests/group/without_nvlink.hpp"
#include "tests/policy/made_up_rows.hpp"
#include "waywiser/base/error.hpp"
#include "waywiser/collective/call.hpp"
#include "waywiser/device/platform.hpp"
#include "waywiser/device/virtual_gpu/virtual_machine.hpp"
#include "waywiser/kernels/block/float8.hpp"
#include "waywiser/kernels/block/half.hpp"
#include "waywiser/policy/chooser.hpp"

namespace waywiser {
namespace {

TEST(GroupOnGpus, NoLl128UnlessAllAreJoinedByNvlink) {
  const auto one_is_not = [](int rank) -> std::shared_ptr<Platform> {
    VirtualMachine machine;
    machine.gpus = 3;
    if (rank == 1) return without_nvlink(rank);
    return open_virtual_platform(machine);
  };
  EXPECT_EQ(on_platforms(3, one_is_not,
                         [](Group& group) {
                           for (const std::size_t count : {5000, 400000})
                             compare(group, Collective::all_reduce, DataType::float32, ReduceOp::sum, count, nullptr);
                           group.set_algorithm("LL128");
                           Twins sum(group, DataType::float32, 5000, 0);
                           try {
                             group.all_reduce(sum.gpu_elements(), sum.gpu_elements());
                             require_that(false, "no LL128");
                           } catch (const Error& error) {
                             const std::string why = error.what();
                             require_that(why.find("rank 1: GPUs 1 and 0 are not joined") != std::string::npos, why);
                           }
                         }),
            no_problems);
}

TEST(GroupOnGpus, EveryWayThatIsSet) {
  TestRanks ranks(2);
  ranks.virtual_gpus = 2;
  EXPECT_EQ(ranks.in_processes([](Group& group) {
    for (const char* way : {"LL", "LL128", "one_shot", "two_shot_LL128", "two_shot(blocks=3,threads=64)", "host"}) {
      group.set_algorithm(way);
      compare(group, Collective::all_reduce, DataType::float32, ReduceOp::sum, 5000, nullptr);
    }
    group.set_algorithm("nccl");
    Twins sum(group, DataType::int32, 10, 0);
    try {
      group.all_reduce(sum.gpu_elements(), sum.gpu_elements());
      require_that(cuda_devices_here() > 1, "no NCCL for virtual GPUs, nor for ranks that share a GPU");
      group.all_reduce(sum.host_elements(), sum.host_elements());
      require_that(sum.equal(), "the sum by NCCL");
    } catch (const Error& error) {
      const std::string text = error.what();
      require_that(text.find("NCCL is for CUDA GPUs") != std::string::npos ||
                       text.find("ranks 0 and 1 share GPU") != std::string::npos,
                   text);
    }
    group.set_algorithm("");
    compare(group, Collective::all_reduce, DataType::float32, ReduceOp::sum, 50, nullptr);
  }),
            no_problems);
}

template <typename T>
bool is_nan(T value) {
  if constexpr (std::is_floating_point_v<T>)
    return std::isnan(value);
  else
    return std::isnan(to_float(value));
}

// The ranks' values cover every order of ranks. All algorithms of a GPU must give the same bits, and the bits of the
// host but for a NaN, whose bits CUDA's min.NaN chooses. Other tests look at the values of the host.
TEST(GroupOnGpus, NanAndSignedZeroAreAlikeInEveryWay) {
  TestRanks ranks(3);
  ranks.virtual_gpus = 3;
  EXPECT_EQ(ranks.in_processes([](Group& group) {
    const auto stream = group.platform()->open_stream(gpu_of_rank(group));
    const auto check = [&]<typename T>(auto narrow, T) {
      constexpr float nan = std::numeric_limits<float>::quiet_NaN();
      constexpr float values[] = {nan, 1, -0.0f, 0.0f, -nan, std::numeric_limits<float>::infinity(), -1};
      constexpr std::size_t count = 7 * 7 * 7;
      std::vector<T> mine(count), expected(count);
      for (std::size_t i = 0, turn = i; i < count; ++i, turn = i) {
        for (int rank = 0; rank < group.rank(); ++rank) turn /= 7;
        mine[i] = narrow(values[turn % 7]);
      }
      const Bytes bytes = count * sizeof(T);
      const Memory on_gpu = group.platform()->allocate(gpu_of_rank(group), bytes, Allocation::gpu);
      const Memory pinned = group.platform()->allocate(host(0), bytes, Allocation::pinned);
      const Region there = on_gpu.region().slice(0, bytes), here = pinned.region().slice(0, bytes);
      const DataType type = DataTypeOf<T>::value;
      for (const ReduceOp op : {ReduceOp::min, ReduceOp::max}) {
        group.set_algorithm("");
        group.all_reduce(std::span(mine), std::span(expected), op);
        std::vector<T> first;
        for (const char* way : {"LL", "LL128", "one_shot", "two_shot_LL128", "two_shot"}) {
          group.set_algorithm(way);
          std::memcpy(here.data, mine.data(), bytes);
          stream->copy(there, here);
          group.all_reduce(Elements(there, type), Elements(there, type), op, Mode::on(*stream));
          stream->copy(here, there);
          group.synchronize(*stream);
          std::vector<T> result(count);
          std::memcpy(result.data(), here.data, bytes);
          if (first.empty()) first = result;
          const std::string what = std::string(name(op)) + " of " + std::string(name(type)) + " by " + way;
          require_that(std::memcmp(result.data(), first.data(), bytes) == 0, what + ": unlike LL");
          for (std::size_t i = 0; i < count; ++i)
            require_that(
                std::memcmp(&result[i], &expected[i], sizeof(T)) == 0 || (is_nan(result[i]) && is_nan(expected[i])),
                what + ": unlike the host");
        }
      }
    };
    check([](float value) { return static_cast<double>(value); }, double());
    check([](float value) { return value; }, float());
    check(to_float16, Float16());
    check(to_bfloat16, Bfloat16());
    check(to_float8_e4m3fn, Float8E4m3());
    check(to_float8_e5m2, Float8E5m2());
  }),
            no_problems);
}

// An algorithm of a plan that does not run here is passed over; one that nobody knows is refused. A possible one is
// used: its grid is too large, which is an error.
TEST(GroupOnGpus, ThePlanSaysWhich) {
  const auto problems_with = [](const std::string& way) {
    TestRanks ranks(2);
    ranks.virtual_gpus = 2;
    ranks.chooser_of = [&](int) {
      Plan plan;
      plan.rows = {made_up::group_row("all_reduce", "gpu", 2, 0, 1 << 20, way),
                   made_up::group_row("broadcast", "host", 2, 0, 1 << 20, "binomial_tree")};
      return std::make_shared<const Chooser>(std::move(plan));
    };
    return ranks.in_processes([](Group& group) {
      compare(group, Collective::broadcast, DataType::float32, ReduceOp::sum, 50, nullptr);
      compare(group, Collective::all_reduce, DataType::float32, ReduceOp::sum, 50, nullptr);
    });
  };
  EXPECT_EQ(problems_with("nccl"), no_problems);
  EXPECT_EQ(problems_with("hierarchy"), no_problems);
  EXPECT_NE(problems_with("binomial")[0].find("plan: all_reduce of gpu arrays has no way 'binomial'"),
            std::string::npos);
  const auto problems = problems_with("one_shot(blocks=600,threads=64)");
  ASSERT_EQ(problems.size(), 2u);
  EXPECT_NE((problems[0] + problems[1]).find("600 blocks"), std::string::npos) << problems[0] << problems[1];
}

}  // namespace
}  // namespace waywiser
