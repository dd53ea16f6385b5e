"""Starts one rank: sets what this node needs, binds, and becomes the program. `python -m waywiser.apply.start_rank`.

It runs on the node of the rank, so that one command serves a cluster of different node types.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import waywiser.plan as plan_schema
from waywiser.apply.memory_policy import prefer_memory
from waywiser.apply.rank_setup import RankSetup, setup_for
from waywiser.apply.store import kept
from waywiser.checked import clean
from waywiser.doctor.job import slurm_tasks_here
from waywiser.errors import InputError, exit_code
from waywiser.files import read_json
from waywiser.pair_rates import rates_for

# Rank on the node and ranks of the node, as launchers tell them.
_LOCAL = (
    ("WAYWISER_LOCAL_RANK", "WAYWISER_LOCAL_SIZE"),
    ("OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"),
    ("MPI_LOCALRANKID", "MPI_LOCALNRANKS"),
    ("SLURM_LOCALID", ""),
    ("LOCAL_RANK", "LOCAL_WORLD_SIZE"),
)
_MOST = 4096
_NO_BINDING = "--no-binding"


def local_rank(environment: Mapping[str, str]) -> tuple[int, int]:
    """Rank on this node and ranks of this node; (0, 1) where no launcher tells."""
    for rank, size in _LOCAL:
        text = environment.get(rank, "")
        if text.isdecimal() and len(text) < 6:
            told = environment.get(size, "")
            count = int(told) if told.isdecimal() and len(told) < 6 else slurm_tasks_here(environment)
            return int(text), min(max(count, int(text) + 1), _MOST)
    return 0, 1


def setups_here(
    results: Path, ranks: Sequence[tuple[int, int]], environment: Mapping[str, str], bind: bool = True
) -> list[RankSetup]:
    """The set-ups of ranks on this machine, from the settings that are kept in `results`."""
    from waywiser import _core

    topology = _core.discover()
    settings = kept(results, topology.fingerprint)
    allowed, rates = os.sched_getaffinity(0), rates_for(topology, results)
    return [
        setup_for(topology, settings, rank, size, environment, allowed, bind=bind, measured=rates)
        for rank, size in ranks
    ]


def plan_to_follow(results: Path) -> Path | None:
    """The plan in `results`, if it was made for this machine, of measurements."""
    from waywiser import _core

    file = results / "plan.json"
    if not file.exists():
        return None
    plan = read_json(file, plan_schema.SCHEMA, plan_schema.VERSION, plan_schema.OLDEST)
    same = plan.get("fingerprint") == _core.discover().fingerprint and not plan.get("simulated")
    return file.resolve() if same else None


def setup_here(results: Path, rank: int, size: int, environment: Mapping[str, str], bind: bool = True) -> RankSetup:
    """The set-up of one rank on this machine."""
    return setups_here(results, [(rank, size)], environment, bind)[0]


def say_why(setup: RankSetup) -> None:
    """A file of messages is for the program's; that nothing is known is for people only."""
    for line in setup.why if setup.removed or sys.stderr.isatty() else ():
        print(f"waywiser: {clean(line)}", file=sys.stderr, flush=True)


def command_for(results: Path, command: Sequence[str], bind: bool = True) -> list[str]:
    """What a launcher starts in place of `command`."""
    unbound = () if bind else (_NO_BINDING,)
    return [sys.executable, "-m", "waywiser.apply.start_rank", *unbound, str(results), *command]


def become(setup: RankSetup, command: Sequence[str]) -> None:
    """Binds this process and turns it into the program. Raises InputError when there is no such program."""
    environment = setup.environment(os.environ)
    if setup.cpus:
        os.sched_setaffinity(0, setup.cpus)
    if setup.memory is not None:
        prefer_memory(setup.memory)
    try:
        os.execvpe(command[0], list(command), environment)
    except OSError as error:
        raise InputError(f"cannot start '{command[0]}': {error.strerror}") from error


def main() -> None:
    """Arguments: --no-binding if so, folder of results, program, its arguments."""
    try:
        rank, size = local_rank(os.environ)
        bind = sys.argv[1] != _NO_BINDING
        arguments = sys.argv[1 if bind else 2 :]
        setup = setup_here(Path(arguments[0]), rank, size, os.environ, bind)
        if rank == 0:
            say_why(setup)
        become(setup, arguments[1:])
    except Exception as error:
        print(f"waywiser: {' '.join(str(error).split())}", file=sys.stderr)
        sys.exit(exit_code(error))


if __name__ == "__main__":
    main()
