"""The job that a process belongs to: all its ranks on this machine, from one process id, without asking any of them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from waywiser.errors import InputError
from waywiser.look.finding import Unknown
from waywiser.look.job import started
from waywiser.look.processes import Process, command_of, environment_of, parents, read_process
from waywiser.look.root import Root

# What moves bytes between processes: by these files a rank is told from the shells and helpers around it.
COMMUNICATE = r"(libmpi|libucp|libnccl|librccl|libnvshmem_host|libfabric|libwaywiser)\.so.*|_core\..*\.so"
_MOST_NAMED = 8


@dataclass(frozen=True)
class Rank:
    """One rank: its number in the job, and the process that communicates."""

    number: int
    process: Process


@dataclass(frozen=True)
class RunningJob:
    """`launcher`: who started the ranks ("none" for a process without ranks); `size`: all ranks of the job."""

    launcher: str
    command: str
    size: int
    ranks: tuple[Rank, ...]


@dataclass(frozen=True)
class _Told:
    """What the variables of one process say."""

    launcher: str
    name: str
    rank: int
    size: int

    @property
    def job(self) -> tuple[str, str, int]:
        return self.launcher, self.name, self.size


class _Processes:
    """All processes, with what the variables of each say, read once. Without this one."""

    def __init__(self, root: Root, asked: int) -> None:
        self._root, self._asked = root, asked
        self.parents = parents(root)
        self._told: dict[int, _Told | None] = {}
        self._children: dict[int, list[int]] = {}
        for child, parent in self.parents.items():
            self._children.setdefault(parent, []).append(child)
        if root.live:
            self.parents.pop(os.getpid(), None)

    def told(self, process: int) -> _Told | None:
        """None for a process that is no rank, or whose variables may not be read. Raises InputError if those of the
        process that is asked about contradict each other."""
        if process not in self._told:
            try:
                found = started(environment_of(self._root, process)) if process in self.parents else None
            except Unknown:
                found = None
            except InputError:
                if process == self._asked:
                    raise
                found = None
            self._told[process] = None
            if found is not None and found.launcher != "none":
                self._told[process] = _Told(found.launcher, found.job, found.rank, found.size)
        return self._told[process]

    def below(self, process: int) -> list[int]:
        """The process and all that it and they have started, from the top."""
        found = [process]
        for one in found:
            found += self._children.get(one, [])
        return [one for one in found if one in self.parents]

    def top(self, process: int) -> int:
        """The first process above a rank that is not of its job: its launcher; 0 if that may not be seen."""
        mine, above = self.told(process), self.parents.get(process, 0)
        while above in self.parents and (told := self.told(above)) and mine and told.job == mine.job:
            above = self.parents[above]
        return above if above in self.parents and above > 1 else 0


def find_job(root: Root, process: int) -> RunningJob:
    """The job of a process that is a rank, a part of one, or their launcher. Raises InputError."""
    all_ = _Processes(root, process)
    if process not in all_.parents:
        raise InputError(f"there is no process {process}")
    mine = all_.told(process)
    if mine:
        launcher = all_.top(process)
        # Some launchers start a rank by a helper of its own: the name of the job tells which others belong to it.
        near = all_.below(launcher) if launcher and not mine.name else list(all_.parents)
        members = [one for one in near if (told := all_.told(one)) and told.job == mine.job]
    else:
        launcher, members = process, [one for one in all_.below(process) if all_.told(one)]
        members = members or _of_slurm(root, all_, process)
    jobs = dict.fromkeys(told.job for one in members if (told := all_.told(one)))
    if len(jobs) > 1:
        firsts = [next(one for one in members if (told := all_.told(one)) and told.job == job) for job in jobs]
        named = ", ".join(str(one) for one in firsts[:_MOST_NAMED])
        raise InputError(f"process {process} has {len(jobs)} jobs below it: name a rank of one, such as {named}")
    command = command_of(root, launcher) if launcher else ""
    if not jobs:
        alone = _communicating(root, all_.below(process))
        return RunningJob("none", command, 1, (Rank(0, alone),))
    (name, _, size) = next(iter(jobs))
    by_rank: dict[int, list[int]] = {}
    for one in members:
        if told := all_.told(one):
            by_rank.setdefault(told.rank, []).append(one)
    ranks = tuple(Rank(rank, _communicating(root, by_rank[rank])) for rank in sorted(by_rank))
    return RunningJob(name, command, size, ranks)


def _of_slurm(root: Root, all_: _Processes, process: int) -> list[int]:
    """The ranks of a step whose srun this is: slurmstepd, not srun, has started them."""

    def job(variables: Mapping[str, str]) -> str:
        return variables.get("SLURM_JOB_ID", "")

    try:
        wanted = job(environment_of(root, process))
        if "srun" not in command_of(root, process).split()[:1][0].rpartition("/")[2] or not wanted:
            return []
    except (Unknown, IndexError):
        return []
    return [one for one in all_.parents if all_.told(one) and job(environment_of(root, one)) == wanted]


def _communicating(root: Root, processes: Iterable[int]) -> Process:
    """The first, from the top, that has a library that communicates; else the last: shells are above programs."""
    found = [read_process(root, one) for one in processes]
    return next((one for one in found if one.loaded(COMMUNICATE)), found[-1])
