#include "waywiser/base/launchers.hpp"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "waywiser/base/ancestors.hpp"
#include "waywiser/base/environment.hpp"
#include "waywiser/base/error.hpp"

namespace waywiser {
namespace {

using Settings = std::map<std::string, std::string, std::less<>>;

Settings operator+(Settings some, const Settings& more) {
  for (const auto& [name, value] : more) some[name] = value;
  return some;
}

Ancestor process(const std::string& command, const Settings& settings = {}) {
  Ancestor one{command, command, "HOME=/root"};
  one.environment += '\0';
  for (const auto& [name, value] : settings) (one.environment += name + "=" + value) += '\0';
  return one;
}

Started started(const Settings& settings, const std::vector<Ancestor>& above = {}) {
  const auto look_up = [&](std::string_view name) -> std::optional<std::string> {
    const auto found = settings.find(name);
    return found == settings.end() ? std::nullopt : std::optional(found->second);
  };
  return who_started(look_up, [&] { return above; });
}

std::string who(const Settings& settings, const std::vector<Ancestor>& above = {}) {
  const Started found = started(settings, above);
  return found.launcher + " " + std::to_string(found.rank) + "/" + std::to_string(found.size);
}

std::string refusal(const Settings& settings) {
  try {
    return "accepted: " + who(settings);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::invalid_input);
    return error.what();
  }
}

const Settings batch{{"SLURM_JOB_ID", "3"}, {"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "2"},        {"SLURM_LOCALID", "0"},
                     {"SLURM_NODEID", "0"}, {"SLURM_GTIDS", "0"},  {"SLURM_TASKS_PER_NODE", "2"}};
const Settings step{{"SLURM_STEP_ID", "0"}, {"SLURM_STEP_NUM_TASKS", "2"}, {"SLURM_STEP_TASKS_PER_NODE", "2"}};
const Settings task = batch + step + Settings{{"SLURM_PROCID", "1"}, {"SLURM_LOCALID", "1"}, {"SLURM_GTIDS", "0,1"}};
const Settings open_mpi{{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "2"}, {"PMIX_NAMESPACE", "7"}};
const Settings hydra{{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}, {"MPI_LOCALNRANKS", "2"}, {"MPI_LOCALRANKID", "1"}};
const Settings torch{{"RANK", "1"},        {"WORLD_SIZE", "2"},       {"LOCAL_RANK", "1"},
                     {"MASTER_PORT", "1"}, {"LOCAL_WORLD_SIZE", "2"}, {"TORCHELASTIC_RUN_ID", "none"}};
const Settings ours{{"WAYWISER_RANK", "1"}, {"WAYWISER_SIZE", "3"}, {"WAYWISER_JOB", "x"}};

TEST(Launchers, AnAllocationStartsNobody) {
  EXPECT_EQ(who({}), "none 0/1");
  EXPECT_EQ(who(batch), "none 0/1");
  EXPECT_EQ(who(batch + Settings{{"SLURM_NNODES", "2"}, {"SLURM_NODEID", "0"}}), "none 0/1");
  EXPECT_EQ(who({{"SLURM_JOB_ID", "3"}, {"SLURM_NTASKS", "8"}, {"SLURM_NNODES", "2"}}), "none 0/1");
  EXPECT_EQ(who({{"PBS_JOBID", "3"}, {"PBS_TASKNUM", "1"}, {"PBS_NODENUM", "0"}, {"LSB_JOBID", "3"}}), "none 0/1");
}

TEST(Launchers, StepsThatSrunDoesNotNumberStartNobody) {
  for (const char* number : {"4294967290", "4294967291", "4294967292", "4294967293", "4294967295", "x", ""})
    EXPECT_EQ(who(task + Settings{{"SLURM_STEP_ID", number}}), "none 0/1") << number;
  EXPECT_EQ(who(task), "srun 1/2");
  EXPECT_EQ(who(task + Settings{{"SLURM_STEP_ID", "4294967289"}}), "srun 1/2");
}

TEST(Launchers, AStepOfAnotherJobStartsNobody) {
  const Settings inherited = batch + step;  // by sbatch inside a step of two tasks of one machine
  EXPECT_EQ(who(inherited), "none 0/1");
  // On two machines each has one task: only slurmstepd tells.
  const Settings apart = inherited + Settings{{"SLURM_STEP_TASKS_PER_NODE", "1(x2)"}, {"SLURM_STEP_NUM_NODES", "2"}};
  for (const char* daemon :
       {"slurmstepd: [3.batch]", "slurmstepd-wlm: [2.0]   ", "slurmstepd: [3.interactive]", "slurmstepd: [3.1]"})
    EXPECT_EQ(who(apart, {process("sh", apart), process(daemon)}), "none 0/1") << daemon;
  EXPECT_EQ(who(apart, {process("sh", apart), process("slurmstepd: [3.0]")}), "srun 0/2");
}

TEST(Launchers, WhatABatchSystemHandsOnStartsNobody) {
  for (const Settings& outer : {open_mpi, hydra, torch, ours})
    for (const char* daemon : {"slurmstepd: [3.batch]", "/opt/pbs/sbin/pbs_mom -N", "pbs_mom"}) {
      const Settings all = outer + batch;
      EXPECT_EQ(who(all, {process("bash script", all), process(daemon)}), "none 0/1") << daemon;
    }
  // srun inside a rank of mpirun, and with PMI2 of its own.
  EXPECT_EQ(who(open_mpi + task, {process("sh", open_mpi + task), process("slurmstepd: [3.0]")}), "srun 1/2");
  EXPECT_EQ(who(hydra + task, {process("slurmstepd: [3.0]")}), "srun 1/2");
}

TEST(Launchers, TheInnermostCounts) {
  const std::vector<std::pair<std::string, Settings>> all{
      {"Open MPI", open_mpi}, {"PMI", hydra}, {"torchrun", torch}, {"waywiser run", ours}, {"srun", task}};
  for (const auto& [outer, around] : all)
    for (const auto& [inner, inside] : all) {
      if (inner == outer || inner == "srun") continue;
      const std::vector<Ancestor> above{process("sh", around + inside), process(inner, around), process("sh", around),
                                        process(outer == "srun" ? "slurmstepd: [3.0]" : outer), process("bash")};
      EXPECT_EQ(started(around + inside, above).launcher, inner) << inner << " in " << outer;
    }
}

TEST(Launchers, WithoutSightOfAncestorsTheTableDecides) {
  EXPECT_EQ(started(task + open_mpi).launcher, "Open MPI");
  EXPECT_EQ(started(task + open_mpi + torch).launcher, "torchrun");
  EXPECT_EQ(started(task + open_mpi + torch + ours).launcher, "waywiser run");
}

TEST(Launchers, ScriptsSetTorchsVariablesForRanksOfOthers) {
  Settings script{{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "n1"}, {"MASTER_PORT", "1"}};
  EXPECT_EQ(started(open_mpi + script, {process("mpirun")}).launcher, "Open MPI");
  EXPECT_EQ(started(open_mpi + script, {process("sh wrapper", open_mpi), process("mpirun")}).launcher, "Open MPI");
  EXPECT_EQ(started(task + script, {process("sh", task), process("slurmstepd: [3.0]")}).launcher, "srun");
}

TEST(Launchers, HalfOfTorchsVariablesStartNobody) {
  for (const Settings& half : {Settings{{"WORLD_SIZE", "4"}}, Settings{{"RANK", "0"}}, Settings{{"MASTER_ADDR", "n1"}},
                               Settings{{"WORLD_SIZE", "4"}, {"MASTER_ADDR", "n1"}, {"MASTER_PORT", "1"}},
                               Settings{{"RANK", "low"}}, Settings{{"RANK", "0"}, {"WORLD_SIZE", "1"}}})
    EXPECT_EQ(started(half).size, 1);
  EXPECT_EQ(refusal({{"RANK", "0"}, {"WORLD_SIZE", "4"}}),
            "WORLD_SIZE=4 and RANK=0 are set, but not MASTER_ADDR and MASTER_PORT, which torchrun and Kubernetes set, "
            "too: set them, or unset RANK for one rank alone");
}

TEST(Launchers, RanksOfOneMachineAreCounted) {
  const Started kubernetes = started({{"RANK", "2"}, {"WORLD_SIZE", "3"}, {"MASTER_ADDR", "a"}, {"MASTER_PORT", "1"}});
  EXPECT_EQ(kubernetes.machines, 2);
  const Started flux = started({{"FLUX_TASK_RANK", "5"},
                                {"FLUX_JOB_SIZE", "8"},
                                {"FLUX_TASK_LOCAL_ID", "1"},
                                {"FLUX_JOB_NNODES", "2"},
                                {"FLUX_JOB_ID", "f2"},
                                {"PMI_RANK", "5"},
                                {"PMI_SIZE", "8"}});
  EXPECT_EQ(flux.launcher + flux.job, "FluxFlux-f2");
  EXPECT_EQ(std::pair(flux.local_rank, flux.local_size), std::pair(1, 0));
  EXPECT_EQ(flux.machines, 2);
  const Started one = started(task + Settings{{"SLURM_STEP_NUM_NODES", "1"}});
  EXPECT_EQ(std::tuple(one.local_rank, one.local_size, one.machines), std::tuple(1, 2, 1));
  const Started pals =
      started({{"PMI_RANK", "4"}, {"PMI_SIZE", "8"}, {"PMI_LOCAL_SIZE", "4"}, {"PMI_LOCAL_RANK", "0"}});
  EXPECT_EQ(std::tuple(pals.local_rank, pals.local_size, pals.machines), std::tuple(0, 4, 2));
}

TEST(Launchers, AJobOfHydraIsNamedByTheProcessThatHasStartedItsRanks) {
  const auto job_below = [&](const std::vector<Ancestor>& above) { return started(hydra, above).job; };
  const std::string job = job_below({process("hydra_pmi_proxy 1")});
  EXPECT_EQ(job_below({process("sh", hydra), process("sh", hydra), process("hydra_pmi_proxy 1")}), job);
  EXPECT_EQ(job_below({{"5.1", "starter of a container", ""}, process("hydra_pmi_proxy 1")}), job);
  EXPECT_NE(job_below({process("hydra_pmi_proxy 2")}), job);
  EXPECT_EQ(job_below({}), "");
}

TEST(Launchers, WhoWaitsForOthersKnowsWhy) {
  EXPECT_EQ(started({{"PMI_RANK", "2"}, {"PMI_SIZE", "4"}}).claim,
            "PMI_SIZE=4 says that PMI has started 4 ranks: start all of them, or unset PMI_RANK for one rank alone");
  EXPECT_EQ(started({{"PMI_RANK", "0"}, {"PMI_SIZE", "1"}}).claim, "");
}

TEST(Launchers, VariablesThatContradictEachOtherAreNamed) {
  EXPECT_EQ(refusal(hydra + Settings{{"PMI_RANK", "2"}}), "PMI_RANK='2' is no number from 0 to 1");
  EXPECT_EQ(refusal(hydra + Settings{{"PMI_RANK", "-1"}}), "PMI_RANK='-1' is no number from 0 to 1");
  EXPECT_EQ(refusal(hydra + Settings{{"MPI_LOCALNRANKS", "3"}}), "MPI_LOCALNRANKS='3' is no number from 1 to 2");
  EXPECT_EQ(refusal(hydra + Settings{{"MPI_LOCALRANKID", "2"}}), "MPI_LOCALRANKID='2' is no number from 0 to 1");
  EXPECT_EQ(refusal({{"FLUX_TASK_RANK", "0"}}),
            "FLUX_JOB_SIZE is not set, but the other variables of its launcher are");
  Settings bad = task + Settings{{"SLURM_PROCID", "2"}};
  bad.erase("SLURM_GTIDS");
  EXPECT_EQ(refusal(bad), "SLURM_PROCID='2' is no number from 0 to 1");
}

TEST(Launchers, WhatTellsOfAJobIsNotForOthers) {
  for (const Launcher& launcher : launchers()) {
    EXPECT_TRUE(tells_of_a_job(launcher.rank) && tells_of_a_job(launcher.size)) << launcher.name;
    for (const auto& names : {launcher.local_rank, launcher.local_size})
      for (const std::string_view name : names) EXPECT_TRUE(tells_of_a_job(name)) << name;
  }
  for (const char* name : {"WAYWISER_SECRET", "PMIX_RANK", "PMI_FD"}) EXPECT_TRUE(tells_of_a_job(name)) << name;
  for (const char* name : {"HOME", "SLURM_JOB_ID", "MASTER_ADDR", "FLUX_URI"})
    EXPECT_FALSE(tells_of_a_job(name)) << name;
}

TEST(Ancestors, AreThisProcessesParents) {
  const std::vector<Ancestor> found = ancestors();
  std::set<std::string> identities;
  for (const Ancestor& one : found) identities.insert(one.identity);
  EXPECT_EQ(identities.size(), found.size());
  for (const std::string& identity : identities) EXPECT_NE(identity.find('.'), identity.npos) << identity;
}

}  // namespace
}  // namespace waywiser
