#include "waywiser/comm/bootstrap/launch.hpp"

#include <unistd.h>

#include <charconv>

#include "waywiser/base/environment.hpp"
#include "waywiser/base/error.hpp"

namespace waywiser {
namespace {

constexpr int most_ranks = 32767;

// The variables of one launcher. `local` counts the ranks of this machine; `job` combines the values of two variables.
struct Dialect {
  std::string_view launcher, rank, size, local, job, job_part;
};

// The order matters: under Slurm mpirun sets its own variables besides Slurm's; so does `waywiser run` under any
// launcher.
constexpr Dialect dialects[] = {
    {"waywiser run", "WAYWISER_RANK", "WAYWISER_SIZE", "WAYWISER_LOCAL_SIZE", "WAYWISER_JOB", ""},
    {"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE", "PMIX_NAMESPACE",
     "OMPI_MCA_ess_base_jobid"},
    {"PMI", "PMI_RANK", "PMI_SIZE", "MPI_LOCALNRANKS", "PMI_JOBID", "HYDRA_LAUNCHER_JOBID"},
    {"torchrun", "RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "TORCHELASTIC_RUN_ID", "MASTER_PORT"},
    {"srun", "SLURM_PROCID", "SLURM_NTASKS", "", "SLURM_JOB_ID", "SLURM_STEP_ID"},
};

[[noreturn]] void refuse(const std::string& why) { throw Error(ErrorKind::invalid_input, why); }

int read_integer(const Lookup& lookup, std::string_view name, int least, int most) {
  const auto text = lookup(name);
  if (!text) refuse(std::string(name) + " is not set, but the other variables of its launcher are");
  int value = 0;
  const auto [end, problem] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (problem != std::errc() || end != text->data() + text->size() || value < least || value > most)
    refuse(std::string(name) + "=" + quoted(*text, 40) + " is no number from " + std::to_string(least) + " to " +
           std::to_string(most));
  return value;
}

const Dialect* spoken(const Lookup& lookup) {
  for (const Dialect& dialect : dialects)
    if (lookup(dialect.rank)) return &dialect;
  return nullptr;
}

// Ranks of one launcher on one machine have the same parent process.
std::string job_of(const Dialect& dialect, const Lookup& lookup) {
  std::string job;
  for (const std::string_view part : {dialect.job, dialect.job_part})
    if (const auto value = part.empty() ? std::nullopt : lookup(part)) job += "-" + *value;
  return job.empty() ? "-parent-" + std::to_string(::getppid()) : job;
}

bool on_one_machine(const Dialect& dialect, const Lookup& lookup, int size) {
  if (lookup(dialect.local)) return read_integer(lookup, dialect.local, 1, size) == size;
  for (const std::string_view nodes : {"SLURM_STEP_NUM_NODES", "SLURM_NNODES"})
    if (lookup(nodes)) return read_integer(lookup, nodes, 1, most_ranks) == 1;
  return true;
}

std::optional<Endpoint> root_of(const Dialect& dialect, const Lookup& lookup, bool one_machine) {
  if (const auto root = lookup("WAYWISER_ROOT")) return parse_endpoint(*root);
  if (one_machine) return {};
  if (dialect.launcher != "torchrun" || !lookup("MASTER_ADDR"))
    refuse(std::string(dialect.launcher) +
           " started ranks on several machines: set WAYWISER_ROOT to HOST:PORT of rank 0's machine and WAYWISER_SECRET "
           "to one secret, the same for all ranks");
  // torch.distributed itself uses the port.
  const int port = read_integer(lookup, "MASTER_PORT", 1, 65534) + 1;
  return Endpoint{*lookup("MASTER_ADDR"), static_cast<std::uint16_t>(port)};
}

std::string secret_for(const std::optional<Endpoint>& root, const Lookup& lookup) {
  const std::string secret = lookup("WAYWISER_SECRET").value_or("");
  if (secret.empty() && !root) return secret;
  if (secret.size() < shortest_secret)
    refuse("WAYWISER_SECRET must have at least " + std::to_string(shortest_secret) +
           " characters, the same in all ranks" + (secret.empty() ? "; it is not set" : ""));
  return secret;
}

}  // namespace

Launch read_launch(const Lookup& lookup) {
  const Dialect* dialect = spoken(lookup);
  Launch launch;
  launch.machine = lookup("WAYWISER_MACHINE").value_or("");
  if (dialect == nullptr) return launch;
  launch.launcher = dialect->launcher;
  launch.size = read_integer(lookup, dialect->size, 1, most_ranks);
  launch.rank = read_integer(lookup, dialect->rank, 0, launch.size - 1);
  launch.job = std::string(dialect->launcher) + job_of(*dialect, lookup);
  if (launch.size == 1) return launch;
  launch.root = root_of(*dialect, lookup, on_one_machine(*dialect, lookup, launch.size));
  launch.secret = secret_for(launch.root, lookup);
  return launch;
}

Launch read_launch() {
  return read_launch([](std::string_view name) { return environment(name); });
}

}  // namespace waywiser
