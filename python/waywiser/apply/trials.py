"""Times under each value of a setting, simulated or measured, and whether another value than the default is worth it.

The score of a value, for each kind of operation by itself: for `latency` operations a second, the sum over the sizes
(small sizes decide); for `bandwidth` bytes a second (large sizes decide); for `mixed` the time of one operation of each
size, which large sizes decide too. Another value than the default is worth it if its mean score over the kinds is at
least `MARGIN` times that of the default, and no kind loses more than `ALIKE`.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from waywiser.units import format_bytes, format_seconds

MARGIN, ALIKE = 1.05, 1.02

Times = Mapping[int, float]  # size -> seconds
Trial = Mapping[str, Times]  # kind of operation -> times


@dataclass(frozen=True)
class Judged:
    """The best value; `gain`: its mean score relative to the default, `worst`: that of the kind that gains least."""

    value: str
    gain: float
    worst: float

    @property
    def is_worth_it(self) -> bool:
        return self.gain >= MARGIN and self.worst * ALIKE >= 1


def judged(trials: Mapping[str, Trial], default: str, purpose: str, deciding: Collection[str] = ()) -> Judged:
    """The best value beside the default that is worth it, else the default. `deciding`: the kinds whose gain counts, by
    default all."""
    usual = trials[default]
    ratios = {
        value: {kind: score(times, purpose) / score(usual[kind], purpose) for kind, times in trial.items()}
        for value, trial in trials.items()
        if value != default
    }
    found = [Judged(value, _mean(of, deciding), min(of.values(), default=1.0)) for value, of in ratios.items()]
    worth = [one for one in found if one.is_worth_it]
    return max(worth, key=lambda one: one.gain, default=Judged(default, 1.0, 1.0))


def _mean(ratios: Mapping[str, float], kinds: Collection[str]) -> float:
    logs = [math.log(ratio) for kind, ratio in ratios.items() if not kinds or kind in kinds]
    return math.exp(sum(logs) / len(logs)) if logs else 1.0


def score(times: Times, purpose: str) -> float:
    """More is better."""
    if purpose == "latency":
        return sum(1 / seconds for seconds in times.values())
    if purpose == "bandwidth":
        return sum(size / seconds for size, seconds in times.items())
    return 1 / sum(times.values())


def compared(trials: Mapping[str, Trial], names: Mapping[str, str]) -> str:
    """ "all_reduce, 64 MiB: 6.56 ms by default, 19.2 ms with PHB": the first kind at its largest size.

    `names`: by value.
    """
    kind, times = next(iter(next(iter(trials.values())).items()))
    size = max(times)
    told = (f"{format_seconds(trials[value][kind][size])} {name}" for value, name in names.items())
    return f"{kind}, {format_bytes(size)}: {', '.join(told)}"
