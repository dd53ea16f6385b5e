"""One run of `waywiser bench`: with ranks of its own, as a rank of a job, or simulated."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from waywiser import _core
from waywiser.bench.backends import backend_for
from waywiser.bench.conduct import FROM_KERNEL
from waywiser.bench.job import JobTeam, follow
from waywiser.bench.outcome import Outcome
from waywiser.bench.run import Wanted, timed
from waywiser.bench.simulated import simulated_rows
from waywiser.bench.startup import time_startup
from waywiser.bench.teams import Setup, our_team, peer_teams
from waywiser.errors import InputError
from waywiser.look.job import started
from waywiser.progress import bar
from waywiser.signals import ENDING, end_at_once, handle


def in_job() -> bool:
    """Whether a launcher has started this process as one of several ranks."""
    return started().size > 1


def with_own_ranks(
    wanted: Wanted, backend: str, bind: bool, output: Path, peers: list[str], full: bool, form: str
) -> None:
    kind = backend_for(backend, wanted.memory)
    outcome = Outcome(kind)
    handle(ENDING, end_at_once)  # prints the results so far
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="waywiser-bench-")))
        by_kernel = FROM_KERNEL in wanted.modes
        setup = Setup(wanted.ranks, kind, wanted.ranks if kind == "virtual_gpu" else 0, output, folder, bind, by_kernel)
        try:
            if wanted.cases():
                ours = our_team(setup)
                stack.callback(ours.close)
                teams = peer_teams(setup, peers, outcome.missing)
                for team in teams.values():
                    stack.callback(team.close)
                outcome.versions = {name: team.version for name, team in teams.items()}
                with bar("bench") as show:
                    outcome.rows.extend(timed(wanted, ours, teams, show, outcome.missing))
            if any(one.shape == "startup" for one in wanted.operations):
                share = wanted.budget / len(wanted.operations)
                outcome.rows.append(time_startup(setup, peers, share, outcome.missing))
        finally:
            outcome.show(full, form)  # before the teams are ended, which takes seconds


def as_rank(wanted: Wanted, backend: str, peers: list[str], full: bool, form: str) -> None:
    """This process is one rank of a job."""
    if peers:
        raise InputError("--against starts the ranks of all libraries itself: write -n N, without a launcher")
    if any(one.shape == "startup" for one in wanted.operations):
        raise InputError("startup times ranks that bench starts itself: write -n N, without a launcher")
    kind = backend_for(backend, wanted.memory)
    core = _core.join_bench(kind, _core.launched_ranks() if kind == "virtual_gpu" else 0)
    if core.rank != 0:
        return follow(core)
    outcome, team = Outcome(kind), JobTeam(core)
    here = replace(wanted, ranks=core.size)
    with ExitStack() as stack:
        stack.callback(outcome.show, full, form)
        with bar("bench") as show:
            outcome.rows.extend(timed(here, team, {}, show, outcome.missing))
        team.close()


def simulated(wanted: Wanted, machine: str, peers: list[str], full: bool, form: str) -> None:
    if peers:
        raise InputError("--against times libraries on this machine: leave out --machine")
    outcome = Outcome("simulated")
    with bar("bench, simulated") as show:
        outcome.rows.extend(simulated_rows(wanted, machine, outcome.missing, show))
    outcome.show(full, form)
