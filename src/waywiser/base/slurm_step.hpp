#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "waywiser/base/launchers.hpp"

namespace waywiser {

// Whether srun has started this process as a task of a step. Batch scripts and interactive shells have variables of a
// task, too, and sbatch, salloc and srun hand on those of the step in which they were called.
bool is_task_of_srun(const Variables& variables, const std::vector<Ancestor>& ancestors);

// Tasks on this machine, from srun's list for all machines: "2(x3),1" is 2 on each of three; 0 if it does not tell.
int slurm_tasks_here(const Variables& variables);

// Whether this is a daemon that starts batch scripts and the tasks of srun.
bool is_batch_daemon(const Ancestor& ancestor);

}  // namespace waywiser
