"""Times several ways of one case, which take turns; clearly slow ones are timed once."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from waywiser.bench.conduct import Case, Contender
from waywiser.bench.team import NotOffered, Timed
from waywiser.points import point_of, quantile

PATIENCE = 60.0


@dataclass
class OneWay:
    """The ranks of a team, set to one way."""

    team: Timed
    way: str
    version: str = ""
    adapts: bool = False

    def slice(self, request: str, patience: float) -> list[list[float]]:
        return self.team.slice(f"{request} {self.way}", patience)

    def close(self) -> None:
        """Does nothing: it does not own the ranks."""


def take_turns(
    teams: Mapping[str, Timed], cases: Mapping[str, Case], until: float, rounds: int, hopeless: float
) -> dict[str, Contender]:
    """Alternates rounds forwards and backwards, at least two, and at most until that time. A way that is slower than
    the fastest by the factor `hopeless` in the first round takes no part in the others. Those that are not offered
    are left out."""
    contenders: dict[str, Contender] = {}
    for way, team in teams.items():
        one = Contender(team)
        try:
            one.plan(cases[way], PATIENCE)
            one.take(cases[way], 5, PATIENCE)
        except NotOffered:
            continue
        contenders[way] = one
    medians = {way: median_of(one) for way, one in contenders.items()}
    hopeful = [way for way, median in medians.items() if median <= hopeless * min(medians.values())]
    for turn in range(1, rounds):
        if turn > 1 and time.monotonic() > until:
            break
        for way in hopeful if turn % 2 else reversed(hopeful):
            contenders[way].take(cases[way], 1000 * turn + 5, PATIENCE)
    return contenders


def _samples(one: Contender) -> list[float]:
    """Seconds of a call for each sample, of the slowest rank."""
    return sorted(max(times) for times in zip(*one.by_rank, strict=True))


def median_of(one: Contender) -> float:
    """Seconds of a call."""
    return quantile(_samples(one), 0.5)


def timed_point(case: Case, one: Contender) -> dict[str, Any]:
    """The point of a profile."""
    return point_of(case.bytes, [seconds / (2 if case.operation.halves else 1) for seconds in _samples(one)])
