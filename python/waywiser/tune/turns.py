"""Times several ways of one case, which take turns; clearly slow ones are timed once."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from waywiser import _core
from waywiser.bench.conduct import Case, Contender, contest
from waywiser.bench.team import NotOffered, Timed

_PATIENCE = 60.0
_LEAST_ROUNDS = 2


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
    teams: Mapping[str, Timed], cases: Mapping[str, Case], until: float, rounds: int, hopeless: float = 0.0
) -> dict[str, _core.Contender]:
    """Interleaves at least two rounds, and at most until that time. A way that is slower than the fastest by the factor
    `hopeless`, if it is not 0, is timed only once. Those that are not offered are left out."""
    ways = list(teams)
    contenders = {way: Contender(team) for way, team in teams.items()}

    def take(which: int, calls: int, counts: bool) -> list[float] | None:
        way = ways[which]
        try:
            found = contenders[way].take(cases[way], calls, 5, _PATIENCE, counts)
        except NotOffered:
            return None
        parts = 2 if cases[way].operation.halves else 1
        return [seconds / parts for seconds in found]

    left = until - time.monotonic()
    found = contest(ways, take, cases[ways[0]], left, _LEAST_ROUNDS, rounds, hopeless)
    return {way: one for way, one in zip(ways, found, strict=True) if one.offered}


def timed_point(case: Case, one: _core.Contender) -> dict[str, Any]:
    """The point of a profile."""
    point: dict[str, Any] = json.loads(one.point(case.bytes))
    return point
