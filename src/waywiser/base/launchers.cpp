#include "waywiser/base/launchers.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "waywiser/base/ancestors.hpp"
#include "waywiser/base/environment.hpp"
#include "waywiser/base/error.hpp"
#include "waywiser/base/slurm_step.hpp"

namespace waywiser {
namespace {

constexpr int most_ranks = 32767;

// What MPI libraries look for, too.
constexpr std::array<std::string_view, 5> of_mpi{"OMPI_COMM_WORLD_", "PMIX_", "PMI_", "MV2_COMM_WORLD_",
                                                 "JSM_NAMESPACE_"};

[[noreturn]] void refuse(const std::string& why) { throw Error(ErrorKind::invalid_input, why); }

int read_integer(const Variables& variables, std::string_view name, int least, int most) {
  const auto text = variables(name);
  if (!text) refuse(std::string(name) + " is not set, but the other variables of its launcher are");
  int value = 0;
  const auto [end, problem] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (problem != std::errc() || end != text->data() + text->size() || value < least || value > most)
    refuse(std::string(name) + "=" + quoted(*text, 40) + " is no number from " + std::to_string(least) + " to " +
           std::to_string(most));
  return value;
}

std::string_view first_set(const Variables& variables, const Launcher::Names& names) {
  const auto found = std::ranges::find_if(names, [&](std::string_view name) { return variables(name).has_value(); });
  return found == names.end() ? std::string_view() : *found;
}

bool has(const std::string& environment, const std::string& entry) {
  for (std::size_t at = environment.find(entry); at != environment.npos; at = environment.find(entry, at + 1))
    if ((at == 0 || environment[at - 1] == '\0') && environment[at + entry.size()] == '\0') return true;
  return false;
}

// The nearest ancestor that did not have the launcher's variables has set them; those whose variables cannot be read
// (of a container) are passed over, but not a batch system. One past the end: none is seen.
std::size_t giver(const Launcher& launcher, const Variables& variables, const std::vector<Ancestor>& ancestors) {
  const std::string entry = std::string(launcher.rank) + "=" + variables(launcher.rank).value_or("");
  const auto found = std::ranges::find_if(ancestors, [&](const Ancestor& one) {
    return is_batch_daemon(one) || (!one.environment.empty() && !has(one.environment, entry));
  });
  return static_cast<std::size_t>(found - ancestors.begin());
}

bool is_srun(const Launcher& launcher) { return launcher.rank == "SLURM_PROCID"; }

// The last row: scripts set these variables for what others have started.
bool is_by_hand(const Launcher& launcher) { return &launcher == &launchers().back(); }

bool speaks(const Launcher& launcher, const Variables& variables, const std::vector<Ancestor>& ancestors) {
  const auto is_set = [&](std::string_view name) { return variables(name).has_value(); };
  if (!is_set(launcher.rank) || !std::ranges::all_of(launcher.needed, is_set)) return false;
  if (is_srun(launcher)) return is_task_of_srun(variables, ancestors);
  // A batch system hands on the variables of the rank that has submitted something.
  const std::size_t from = giver(launcher, variables, ancestors);
  return from >= ancestors.size() || !is_batch_daemon(ancestors[from]);
}

// The innermost; of several by one process, the first of the table. Nullptr: none.
const Launcher* innermost(const Variables& variables, const std::vector<Ancestor>& ancestors) {
  const Launcher* best = nullptr;
  for (const Launcher& launcher : launchers()) {
    if (!speaks(launcher, variables, ancestors) || (best != nullptr && is_by_hand(launcher))) continue;
    if (best == nullptr || giver(launcher, variables, ancestors) < giver(*best, variables, ancestors)) best = &launcher;
  }
  return best;
}

bool is_loopback(std::string_view host) {
  return host == "localhost" || host.starts_with("127.") || host == "::1" || host == "[::1]";
}

// RANK and WORLD_SIZE alone do not say where the others are.
void check_torch(const Started& started, const Variables& variables) {
  if (started.size == 1 || variables("MASTER_PORT")) return;
  const std::string size = "WORLD_SIZE=" + std::to_string(started.size);
  refuse(size + " and RANK=" + std::to_string(started.rank) +
         " are set, but not MASTER_ADDR and MASTER_PORT, which torchrun and Kubernetes set, too: set them, or unset "
         "RANK for one rank alone");
}

int machines_of(const Launcher& launcher, const Started& started, const Variables& variables) {
  if (started.local_size != 0) return (started.size + started.local_size - 1) / started.local_size;
  const std::string_view told = first_set(variables, launcher.machines);
  if (!told.empty()) return read_integer(variables, told, 1, most_ranks);
  const bool elsewhere = is_by_hand(launcher) && !is_loopback(variables("MASTER_ADDR").value_or(""));
  return elsewhere && started.size > 1 ? 2 : 1;
}

void read_local(const Launcher& launcher, const Variables& variables, Started& started) {
  const std::string_view size = first_set(variables, launcher.local_size);
  const std::string_view rank = first_set(variables, launcher.local_rank);
  started.local_size = size.empty() ? 0 : read_integer(variables, size, 1, started.size);
  started.machines = machines_of(launcher, started, variables);
  if (is_srun(launcher)) started.local_size = std::min(slurm_tasks_here(variables), started.size);
  if (started.local_size == 0 && started.machines == 1) started.local_size = started.size;
  const int most = started.local_size == 0 ? started.size : started.local_size;
  started.local_rank = rank.empty() ? 0 : read_integer(variables, rank, 0, most - 1);
}

// Hydra gives its job no name: on one machine the process that has started the ranks is one.
std::string job_of(const Launcher& launcher, bool one_machine, const Variables& variables,
                   const std::vector<Ancestor>& ancestors) {
  std::string job;
  for (const std::string_view name : launcher.job)
    if (const auto value = variables(name)) job += "-" + *value;
  const std::size_t from = giver(launcher, variables, ancestors);
  if (one_machine && (job.empty() || launcher.rank == "PMI_RANK") && from < ancestors.size())
    job += "-process-" + ancestors[from].identity;
  return job.empty() ? job : std::string(launcher.name) + job;
}

}  // namespace

// The order is that of launchers that one process seems to have used, because their ancestors cannot be seen: Slurm's
// variables are also there for mpirun, and those of both for torchrun and `waywiser run`.
std::span<const Launcher> launchers() {
  static const Launcher all[] = {
      {"waywiser run",
       "WAYWISER_RANK",
       "WAYWISER_SIZE",
       {},
       {"WAYWISER_LOCAL_RANK"},
       {"WAYWISER_LOCAL_SIZE"},
       {},
       {"WAYWISER_JOB"}},
      {"torchrun",
       "RANK",
       "WORLD_SIZE",
       {"TORCHELASTIC_RUN_ID"},
       {"LOCAL_RANK"},
       {"LOCAL_WORLD_SIZE"},
       {},
       {"TORCHELASTIC_RUN_ID", "MASTER_PORT"}},
      {"Open MPI",
       "OMPI_COMM_WORLD_RANK",
       "OMPI_COMM_WORLD_SIZE",
       {},
       {"OMPI_COMM_WORLD_LOCAL_RANK"},
       {"OMPI_COMM_WORLD_LOCAL_SIZE"},
       {},
       {"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid"}},
      {"MVAPICH",
       "MV2_COMM_WORLD_RANK",
       "MV2_COMM_WORLD_SIZE",
       {},
       {"MV2_COMM_WORLD_LOCAL_RANK"},
       {"MV2_COMM_WORLD_LOCAL_SIZE"},
       {},
       {}},
      {"jsrun",
       "JSM_NAMESPACE_RANK",
       "JSM_NAMESPACE_SIZE",
       {},
       {"JSM_NAMESPACE_LOCAL_RANK"},
       {"JSM_NAMESPACE_LOCAL_SIZE"},
       {},
       {"PMIX_NAMESPACE"}},
      {"Flux",
       "FLUX_TASK_RANK",
       "FLUX_JOB_SIZE",
       {},
       {"FLUX_TASK_LOCAL_ID"},
       {},
       {"FLUX_JOB_NNODES"},
       {"FLUX_JOB_ID", "FLUX_URI"}},
      {"PMI",
       "PMI_RANK",
       "PMI_SIZE",
       {},
       {"MPI_LOCALRANKID", "PMI_LOCAL_RANK"},
       {"MPI_LOCALNRANKS", "PMI_LOCAL_SIZE"},
       {"SLURM_STEP_NUM_NODES"},
       {"PMI_JOBID", "PALS_APID"}},
      {"srun",
       "SLURM_PROCID",
       "SLURM_STEP_NUM_TASKS",
       {"SLURM_STEP_NUM_TASKS", "SLURM_STEP_ID"},
       {"SLURM_LOCALID"},
       {},
       {"SLURM_STEP_NUM_NODES", "SLURM_NNODES"},
       {"SLURM_JOB_ID", "SLURM_STEP_ID"}},
      {"torchrun",
       "RANK",
       "WORLD_SIZE",
       {"WORLD_SIZE"},
       {"LOCAL_RANK"},
       {"LOCAL_WORLD_SIZE"},
       {},
       {"MASTER_ADDR", "MASTER_PORT"}},
  };
  return all;
}

Started who_started(const Variables& variables, const std::function<std::vector<Ancestor>()>& look) {
  const auto is_set = [&](const Launcher& launcher) { return variables(launcher.rank).has_value(); };
  if (std::ranges::none_of(launchers(), is_set)) return {};
  const std::vector<Ancestor> ancestors = look ? look() : std::vector<Ancestor>();
  const Launcher* launcher = innermost(variables, ancestors);
  if (launcher == nullptr) return {};
  Started started;
  started.launcher = launcher->name;
  started.size = read_integer(variables, launcher->size, 1, most_ranks);
  started.rank = read_integer(variables, launcher->rank, 0, started.size - 1);
  if (is_by_hand(*launcher)) check_torch(started, variables);
  read_local(*launcher, variables, started);
  started.job = job_of(*launcher, started.machines == 1, variables, ancestors);
  if (started.size > 1)
    started.claim = std::string(launcher->size) + "=" + std::to_string(started.size) + " says that " +
                    started.launcher + " has started " + std::to_string(started.size) +
                    " ranks: start all of them, or unset " + std::string(launcher->rank) + " for one rank alone";
  return started;
}

Started who_started() {
  return who_started([](std::string_view name) { return environment(name); }, ancestors);
}

bool tells_of_a_job(std::string_view name) noexcept {
  const auto is_prefix = [&](std::string_view start) { return name.starts_with(start); };
  const auto is_in = [&](const Launcher::Names& names) { return std::ranges::count(names, name) != 0; };
  return name == "WAYWISER_JOB" || name == "WAYWISER_ROOT" || name == "WAYWISER_SECRET" ||
         std::ranges::any_of(of_mpi, is_prefix) || std::ranges::any_of(launchers(), [&](const Launcher& launcher) {
           return name == launcher.rank || name == launcher.size || is_in(launcher.local_rank) ||
                  is_in(launcher.local_size);
         });
}

}  // namespace waywiser
