#include "waywiser/comm/bootstrap/launch.hpp"

#include <gtest/gtest.h>

#include <map>

#include "waywiser/base/error.hpp"

namespace waywiser {
namespace {

using GivenVariables = std::map<std::string, std::string, std::less<>>;

Launch read(const GivenVariables& variables) {
  return read_launch([&](std::string_view name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  });
}

std::string refusal(const GivenVariables& variables) {
  try {
    read(variables);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::invalid_input);
    return error.what();
  }
  return "nothing was refused";
}

const std::string secret = "0123456789abcdef";

TEST(Launch, AloneWithoutALauncher) {
  const Launch launch = read({});
  EXPECT_EQ(launch.launcher, "none");
  EXPECT_EQ(launch.size, 1);
}

TEST(Launch, EachLauncherHasItsVariables) {
  const std::pair<std::string, GivenVariables> launchers[] = {
      {"waywiser run", {{"WAYWISER_RANK", "2"}, {"WAYWISER_SIZE", "4"}, {"WAYWISER_JOB", "7"}}},
      {"Open MPI", {{"OMPI_COMM_WORLD_RANK", "2"}, {"OMPI_COMM_WORLD_SIZE", "4"}, {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"}}},
      {"PMI", {{"PMI_RANK", "2"}, {"PMI_SIZE", "4"}}},
      {"srun",
       {{"SLURM_PROCID", "2"},
        {"SLURM_STEP_NUM_TASKS", "4"},
        {"SLURM_STEP_ID", "0"},
        {"SLURM_NNODES", "1"},
        {"SLURM_JOB_ID", "9"}}},
      {"torchrun", {{"RANK", "2"}, {"WORLD_SIZE", "4"}, {"LOCAL_WORLD_SIZE", "4"}, {"MASTER_PORT", "29500"}}},
  };
  for (const auto& [launcher, variables] : launchers) {
    const Launch launch = read(variables);
    EXPECT_EQ(launch.launcher, launcher);
    EXPECT_EQ(launch.rank, 2);
    EXPECT_EQ(launch.size, 4);
    EXPECT_FALSE(launch.root) << launcher;
    EXPECT_TRUE(launch.job.starts_with(launcher + "-")) << launch.job;
  }
}

TEST(Launch, OneLauncherInsideAnother) {
  const Launch launch = read({{"SLURM_PROCID", "0"},
                              {"SLURM_STEP_NUM_TASKS", "8"},
                              {"SLURM_STEP_ID", "0"},
                              {"WAYWISER_RANK", "1"},
                              {"WAYWISER_SIZE", "2"}});
  EXPECT_EQ(launch.launcher, "waywiser run");
  EXPECT_EQ(launch.size, 2);
}

TEST(Launch, SeveralMachinesNeedARootAndASecret) {
  GivenVariables variables{
      {"SLURM_PROCID", "1"}, {"SLURM_STEP_NUM_TASKS", "4"}, {"SLURM_STEP_ID", "3"}, {"SLURM_STEP_NUM_NODES", "2"}};
  EXPECT_NE(refusal(variables).find("WAYWISER_ROOT"), std::string::npos);
  variables["WAYWISER_ROOT"] = "node1:4711";
  EXPECT_NE(refusal(variables).find("WAYWISER_SECRET"), std::string::npos);
  variables["WAYWISER_SECRET"] = "short";
  EXPECT_NE(refusal(variables).find("at least 16"), std::string::npos);
  variables["WAYWISER_SECRET"] = secret;
  EXPECT_EQ(text(*read(variables).root), "node1:4711");
}

TEST(Launch, PmiUnderSlurmAsksSlurmForTheMachines) {
  GivenVariables variables{{"PMI_RANK", "1"}, {"PMI_SIZE", "4"}, {"SLURM_STEP_NUM_NODES", "2"}};
  EXPECT_NE(refusal(variables).find("WAYWISER_ROOT"), std::string::npos);
  variables["MPI_LOCALNRANKS"] = "4";
  EXPECT_FALSE(read(variables).root);
}

TEST(Launch, TorchrunNamesTheRootItself) {
  const Launch launch = read({{"RANK", "0"},
                              {"WORLD_SIZE", "4"},
                              {"LOCAL_WORLD_SIZE", "2"},
                              {"MASTER_ADDR", "fd00::1"},
                              {"MASTER_PORT", "29500"},
                              {"WAYWISER_SECRET", secret}});
  EXPECT_EQ(text(*launch.root), "[fd00::1]:29501");
}

TEST(Launch, TorchsVariablesWithoutTorchrunNameTheRootToo) {
  GivenVariables variables{
      {"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "train-master-0"}, {"MASTER_PORT", "23456"}};
  EXPECT_NE(refusal(variables).find("WAYWISER_SECRET"), std::string::npos);
  variables["WAYWISER_SECRET"] = secret;
  EXPECT_EQ(text(*read(variables).root), "train-master-0:23457");
  variables["MASTER_ADDR"] = "127.0.0.1";
  EXPECT_FALSE(read(variables).root);
}

TEST(Launch, BadNumbersAreNamed) {
  EXPECT_EQ(refusal({{"WAYWISER_RANK", "4"}, {"WAYWISER_SIZE", "4"}}), "WAYWISER_RANK='4' is no number from 0 to 3");
  EXPECT_EQ(refusal({{"PMI_RANK", "0"}, {"PMI_SIZE", "1e3"}}), "PMI_SIZE='1e3' is no number from 1 to 32767");
  EXPECT_EQ(refusal({{"PMI_RANK", "0"}}), "PMI_SIZE is not set, but the other variables of its launcher are");
}

TEST(Endpoint, IsReadBackAndRefused) {
  EXPECT_EQ(text(parse_endpoint("node1:80")), "node1:80");
  EXPECT_EQ(text(parse_endpoint("[::1]:80")), "[::1]:80");
  for (const char* bad : {"", "node", "node:", ":80", "node:80x", "node:65536", "node:-1"})
    EXPECT_THROW(parse_endpoint(bad), Error) << bad;
}

}  // namespace
}  // namespace waywiser
