"""Uses processes of `waywiser bench` as a benchmark of settings; they are restarted for each set of variables."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from waywiser.bench.conduct import Case, Contender, contest
from waywiser.bench.operations import OPERATIONS
from waywiser.bench.team import NotOffered, TeamError, Timed
from waywiser.errors import InputError
from waywiser.prove.benchmarks import Benchmark, Times

Start = Callable[[Path, Mapping[str, str]], Timed]
_SLICES = 3
_PATIENCE = 60.0


def timed_by(start: Start, tests: Sequence[tuple[str, str, str]], sizes: Sequence[int]) -> Benchmark:
    """`start` makes a team with the given variables; `tests`: (memory, name of the test, operation)."""

    def run(variables: Mapping[str, str]) -> Times:
        found: Times = {}
        with tempfile.TemporaryDirectory(prefix="waywiser-verify-") as folder:
            try:
                team = start(Path(folder), variables)
                try:
                    for memory, test, operation in tests:
                        for size in sizes:
                            mode = "stream" if memory == "gpu" else "blocking"
                            found[test, size] = _seconds(team, Case(OPERATIONS[operation], memory, size, mode))
                finally:
                    team.close()
            except (TeamError, NotOffered) as error:
                raise InputError(f"the benchmark failed: {error}") from error
        return found

    return run


def _seconds(team: Timed, case: Case) -> float:
    """The median of one message or call over some slices."""
    contender = Contender(team)
    contest([""], lambda _, calls, counts: contender.take(case, calls, 5, _PATIENCE, counts), case, 0, _SLICES, _SLICES)
    return contender.figures(case).median
