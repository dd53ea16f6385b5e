#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <utility>

#include "tests/policy/made_up_links.hpp"
#include "waywiser/c/waywiser.h"
#include "waywiser/policy/choose.hpp"
#include "waywiser/topology/discover.hpp"
#include "waywiser/topology/topology.hpp"

namespace waywiser {
namespace {

// A plan of one pair and one collective, in a file.
class CPlan : public testing::Test {
 protected:
  void SetUp() override {
    Profile profile =
        made_up::made_up_profile({{"sm_copy", made_up::line(1e-6, 1e9)}, {"copy_engine", made_up::line(1e-5, 1e11)}});
    for (const auto& [way, start, rate] : {std::tuple("LL", 1e-6, 1e9), std::tuple("LL128(blocks=16)", 1e-5, 1e11)})
      profile.collectives.push_back(
          {"all_reduce", "gpu", 4, way,
           made_up::made_up_series({way, made_up::line(start, rate)}, 0, 1, Bytes{1} << 20).points});
    profile.collectives.push_back(
        {"all_reduce", "gpu", 4, "Ring(protocol=LL)", profile.collectives.front().points, nccl});
    std::ofstream(file_) << to_json(choose(profile, {"sm_copy", "copy_engine"}));
    ASSERT_EQ(ww_plan_open(file_.c_str(), &plan_), WW_OK) << ww_error_text();
  }
  void TearDown() override {
    ww_plan_free(plan_);
    ::remove(file_.c_str());
  }

  static ww_plan_key pair() { return {"latency", "gpu0", "gpu1", nullptr, 1, nullptr, 0, nullptr}; }
  static ww_plan_key collective() { return {"all_reduce", nullptr, nullptr, nullptr, 0, "gpu", 4, nullptr}; }
  std::string asked(const ww_plan_key& key, std::size_t bytes) {
    const int code = ww_plan_choose(plan_, &key, bytes, &choice_);
    return code == WW_OK ? choice_.way : std::to_string(code) + ": " + ww_error_text();
  }

  std::string hash(const char* partner) {
    ww_plan_facts facts;
    return ww_plan_describe(plan_, partner, &facts) == WW_OK ? facts.hash : ww_error_text();
  }

  static constexpr const char* nccl = "NCCL 2.27.5";
  const std::string file_ = testing::TempDir() + "c_plan_test.json";
  ww_plan* plan_ = nullptr;
  ww_plan_choice choice_{};
};

TEST_F(CPlan, APairGetsItsPathItsTimeAndTheReason) {
  EXPECT_EQ(asked(pair(), 1024), "sm_copy");
  EXPECT_STREQ(choice_.runner_up, "copy_engine");
  EXPECT_GT(choice_.runner_up_ratio, 1);
  EXPECT_NE(std::string(choice_.why).find("copy_engine takes"), std::string::npos) << choice_.why;
  EXPECT_NEAR(choice_.seconds, 1e-6 + 1024 / 1e9, 1e-12);
  EXPECT_EQ(asked(pair(), 1536), "sm_copy");
  EXPECT_NEAR(choice_.seconds, 1e-6 + 1536 / 1e9, 1e-12) << "between the measured sizes";
  EXPECT_EQ(asked(pair(), 64 << 20), "copy_engine");
  EXPECT_EQ(asked(pair(), ~std::size_t{0} >> 2), "copy_engine");
  EXPECT_EQ(choice_.seconds, 0) << "nobody has measured that size";
}

TEST_F(CPlan, ACollectiveGetsItsAlgorithm) {
  EXPECT_EQ(asked(collective(), 8), "LL");
  EXPECT_EQ(asked(collective(), 1 << 20), "LL128(blocks=16)");
  EXPECT_STREQ(choice_.runner_up, "LL");
}

TEST_F(CPlan, TheRangeOfSizesIsTold) {
  ASSERT_EQ(asked(collective(), 8), "LL");
  EXPECT_EQ(choice_.from_bytes, 0);
  const std::size_t last = choice_.to_bytes;
  EXPECT_EQ(asked(collective(), last), "LL");
  EXPECT_EQ(asked(collective(), last + 1), "LL128(blocks=16)");
  EXPECT_EQ(choice_.from_bytes, last + 1);
  EXPECT_EQ(choice_.to_bytes, 2 << 20);
}

TEST_F(CPlan, AnotherLibraryHasRowsOfItsOwn) {
  ww_plan_key key = collective();
  key.partner = nccl;
  EXPECT_EQ(asked(key, std::size_t{5} << 32), "Ring(protocol=LL)");
  EXPECT_EQ(asked(collective(), 8), "LL") << "its rows are not those of groups";
  key.partner = "NCCL 2.27.6";
  EXPECT_EQ(asked(key, 8), "2: the plan has no row for all_reduce of 4 ranks, gpu arrays, NCCL 2.27.6");
}

TEST_F(CPlan, TheHashIsThatOfThePartnersRows) {
  const std::string all = hash(nullptr), of_nccl = hash("NCCL"), of_others = hash("NIXL");
  EXPECT_EQ(all.size(), 16);
  EXPECT_TRUE(all != of_nccl && of_nccl != of_others && all != of_others);
  Plan plan = plan_from_json(read_json(file_), file_);
  ww_plan_free(std::exchange(plan_, nullptr));
  std::erase_if(plan.rows, [](const PlanRow& row) { return row.key.partner.empty(); });
  std::ofstream(file_) << to_json(plan);
  ASSERT_EQ(ww_plan_open(file_.c_str(), &plan_), WW_OK);
  EXPECT_EQ(hash("NCCL"), of_nccl) << "rows of others do not matter";
  ww_plan_facts facts;
  ASSERT_EQ(ww_plan_describe(plan_, nullptr, &facts), WW_OK);
  EXPECT_EQ(facts.fingerprint, plan.fingerprint);
  EXPECT_EQ(facts.simulated, 1);
  EXPECT_EQ(ww_plan_describe(nullptr, nullptr, &facts), WW_INVALID_INPUT);
  EXPECT_EQ(ww_plan_describe(plan_, nullptr, nullptr), WW_INVALID_INPUT);
}

TEST(CPlanFile, ThisMachineHasAFingerprint) {
  char text[64];
  ASSERT_EQ(ww_machine_fingerprint(text, sizeof text), WW_OK) << ww_error_text();
  EXPECT_EQ(text, fingerprint(discover()));
  EXPECT_EQ(ww_machine_fingerprint(text, 63), WW_INVALID_INPUT);
  EXPECT_EQ(ww_machine_fingerprint(nullptr, 64), WW_INVALID_INPUT);
}

TEST_F(CPlan, WhatThePlanDoesNotHaveIsUnavailable) {
  ww_plan_key key = pair();
  key.destination = "gpu7";
  EXPECT_EQ(asked(key, 8), "2: the plan has no row for latency from gpu0 to gpu7");
  key = collective();
  key.ranks = 3;
  EXPECT_EQ(asked(key, 8), "2: the plan has no row for all_reduce of 3 ranks, gpu arrays");
}

TEST_F(CPlan, WrongQuestionsAreInvalidInput) {
  ww_plan_key key = pair();
  key.operation = "by pigeon";
  EXPECT_TRUE(asked(key, 8).starts_with("1: ")) << asked(key, 8);
  key = pair();
  key.source = "cpu";
  EXPECT_TRUE(asked(key, 8).starts_with("1: ")) << asked(key, 8);
  key = pair();
  key.processes = 3;
  EXPECT_EQ(asked(key, 8), "1: processes are 1 or 2");
  key = pair();
  key.destination = nullptr;
  EXPECT_EQ(asked(key, 8), "1: the destination is NULL");
  key = collective();
  key.memory = nullptr;
  EXPECT_EQ(asked(key, 8), "1: the memory is NULL");
  EXPECT_EQ(ww_plan_choose(plan_, nullptr, 8, &choice_), WW_INVALID_INPUT);
  EXPECT_EQ(ww_plan_choose(nullptr, &key, 8, &choice_), WW_INVALID_INPUT);
  EXPECT_EQ(ww_plan_choose(plan_, &key, 8, nullptr), WW_INVALID_INPUT);
}

TEST(CPlanFile, OneThatIsNotThereIsInvalidInput) {
  ww_plan* plan = nullptr;
  EXPECT_EQ(ww_plan_open("/nowhere/plan.json", &plan), WW_INVALID_INPUT);
  EXPECT_NE(std::string(ww_error_text()).find("/nowhere/plan.json"), std::string::npos);
  EXPECT_EQ(plan, nullptr);
  EXPECT_EQ(ww_plan_open("x", nullptr), WW_INVALID_INPUT);
  ww_plan_free(nullptr);
}

}  // namespace
}  // namespace waywiser
