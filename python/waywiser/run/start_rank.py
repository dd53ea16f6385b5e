"""Sets variables for this node, binds, and becomes the rank's program. `python -m waywiser.run.start_rank`.

It runs on the node of the rank, so that one command serves a cluster of different node types.
"""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import waywiser.plan as plan_schema
from waywiser.apply.hand_out import ACCEPT
from waywiser.apply.store import all_kept, kept
from waywiser.errors import InputError, exit_code
from waywiser.files import read_json
from waywiser.json_fields import clean
from waywiser.look.commands import Live
from waywiser.look.job import job, local_rank
from waywiser.look.root import Root
from waywiser.pair_rates import rates_for
from waywiser.run.memory_policy import prefer_memory
from waywiser.run.rank_setup import RankSetup, setup_for

_NO_BINDING = "--no-binding"
_OPTIONS = (_NO_BINDING, ACCEPT)


def setups_here(
    results: Path,
    ranks: Sequence[tuple[int, int]],
    environment: Mapping[str, str],
    bind: bool = True,
    accept_simulated: bool = False,
) -> list[RankSetup]:
    """The set-ups of ranks on this machine, from the settings in `results`."""
    from waywiser import _core

    topology = _core.discover()
    settings = kept(results, topology.fingerprint)
    allowed, rates = os.sched_getaffinity(0), rates_for(topology, results)
    return [
        setup_for(
            topology, settings, rank, size, environment, allowed, bind=bind, measured=rates,
            accept_simulated=accept_simulated, driver=_this_machine,
        )
        for rank, size in ranks
    ]  # fmt: skip


def _this_machine(environment: Mapping[str, str]) -> Root:
    """As a program with these variables sees it."""
    return Root(environment=environment, commands=Live(environment=environment))


def plan_to_follow(results: Path) -> Path | None:
    """The plan in `results`, if it was made from measurements of this machine."""
    from waywiser import _core

    file = results / "plan.json"
    if not file.exists():
        return None
    plan = read_json(file, plan_schema.SCHEMA, plan_schema.VERSION, plan_schema.OLDEST)
    same = plan.get("fingerprint") == _core.discover().fingerprint and not plan.get("simulated")
    return file.resolve() if same else None


def setup_here(
    results: Path,
    rank: int,
    size: int,
    environment: Mapping[str, str],
    bind: bool = True,
    accept_simulated: bool = False,
) -> RankSetup:
    """The set-up of one rank on this machine."""
    return setups_here(results, [(rank, size)], environment, bind, accept_simulated)[0]


def say_why(setup: RankSetup, results: Path) -> None:
    """A file of messages is for the program's: there it is only said what changes, and that the settings in `results`
    are all of other kinds of machines."""
    lines = setup.why if sys.stderr.isatty() else setup.changes
    if not setup.known and setup.why[0] not in lines and all_kept(results):
        lines = (setup.why[0], *lines)
    for line in lines:
        print(f"waywiser: {socket.gethostname()}: {clean(line)}", file=sys.stderr, flush=True)


def say_predicted(setup: RankSetup, rank: str) -> None:
    """A line of this rank if it gets settings that were not measured on such a machine."""
    if setup.predicted:
        count = f"{len(setup.predicted)} simulated setting{'' if len(setup.predicted) == 1 else 's'}"
        text = f"rank {rank} on {socket.gethostname()}: {count}, not measured: {' '.join(setup.predicted)}"
        print(f"waywiser: {clean(text)}", file=sys.stderr, flush=True)


def command_for(results: Path, command: Sequence[str], bind: bool = True, accept_simulated: bool = False) -> list[str]:
    """The command that a launcher starts instead of `command`."""
    options = [option for option, on in ((_NO_BINDING, not bind), (ACCEPT, accept_simulated)) if on]
    return [sys.executable, "-m", "waywiser.run.start_rank", *options, str(results), *command]


def become(setup: RankSetup, command: Sequence[str]) -> None:
    """Binds this process and replaces it with the program. Raises InputError if there is no such program."""
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
    """Arguments: optional --no-binding and --accept-simulated, folder of results, program, its arguments."""
    try:
        rank, size = local_rank()
        arguments = sys.argv[1:]
        options = []
        while arguments[0] in _OPTIONS:
            options.append(arguments.pop(0))
        results = Path(arguments[0])
        setup = setup_here(results, rank, size, os.environ, _NO_BINDING not in options, ACCEPT in options)
        if rank == 0:
            say_why(setup, results)
        told = job()
        say_predicted(setup, str(told.rank if told else rank))
        become(setup, arguments[1:])
    except Exception as error:
        print(f"waywiser: {' '.join(str(error).split())}", file=sys.stderr)
        sys.exit(exit_code(error))


if __name__ == "__main__":
    main()
