"""The job and rank of this process, from the variables that launchers set."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate

# Rank, size, and variables that together name the job step.
_LAUNCHERS = (
    ("WAYWISER_RANK", "WAYWISER_SIZE", ("WAYWISER_JOB",)),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", ("PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid")),
    ("SLURM_PROCID", "SLURM_NTASKS", ("SLURM_JOB_ID", "SLURM_STEP_ID")),
    ("PMI_RANK", "PMI_SIZE", ("PMI_JOBID", "HYDI_CONTROL_FD", "SLURM_JOB_ID")),
    ("RANK", "WORLD_SIZE", ("TORCHELASTIC_RUN_ID", "MASTER_PORT")),
)
# Ranks of this node, if the launcher counts them; else the number of nodes.
_LOCAL_SIZES = ("WAYWISER_LOCAL_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "LOCAL_WORLD_SIZE")
_SLURM_TASKS = ("SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE")
_ALIKE = re.compile(r"(\d{1,5})(?:\(x(\d{1,6})\))?", re.ASCII)
_NODES = ("SLURM_STEP_NUM_NODES", "SLURM_NNODES")


@dataclass(frozen=True)
class Job:
    """The place of this process in a job step; `name` is the same at all ranks and safe as a file name."""

    rank: int
    size: int
    name: str


def job(environment: Mapping[str, str] = os.environ) -> Job | None:
    """The job that this process belongs to; None outside one."""
    for rank, size, names in _LAUNCHERS:
        told = environment.get(rank, ""), environment.get(size, "")
        if all(text.isascii() and text.isdecimal() and len(text) < 8 for text in told):
            words = [environment[name] for name in names if name in environment]
            name = re.sub(r"[^A-Za-z0-9_.-]", "-", "-".join(words))[:80]
            if int(told[0]) < int(told[1]):
                return Job(int(told[0]), int(told[1]), name or "job")
    return None


def nodes(environment: Mapping[str, str] = os.environ) -> int:
    """A lower bound for the number of nodes of the job; 1 outside a job."""
    told = job(environment)
    if told is None:
        return 1
    counts = {name: _number(environment.get(name, "")) for name in (*_LOCAL_SIZES, *_NODES)}
    local = next((counts[name] for name in _LOCAL_SIZES if counts[name]), 0)
    return -(-told.size // local) if local else next((counts[name] for name in _NODES if counts[name]), 1)


def slurm_tasks_here(environment: Mapping[str, str]) -> int:
    """Ranks of this node, from srun's list for all nodes: "2(x3),1" is 2 on each of three nodes; 0 outside a step."""
    node = _number(environment.get("SLURM_NODEID", ""))
    for name in _SLURM_TASKS:
        parts = [_ALIKE.fullmatch(part) for part in environment.get(name, "").split(",")]
        if all(parts):
            counts = [(int(part[1]), int(part[2] or 1)) for part in parts if part is not None]
            before = list(accumulate(nodes for _, nodes in counts))
            return next((tasks for (tasks, _), end in zip(counts, before, strict=True) if node < end), 0)
    return _number(environment.get("SLURM_NTASKS_PER_NODE", "").partition("(")[0])


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 8 else 0
