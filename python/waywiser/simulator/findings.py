"""What was published, and how the same figure is predicted."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from waywiser.simulator.answers import Answer

Find = Callable[..., float]


@dataclass(frozen=True)
class Finding:
    """What was published: from `low` to `high` in `unit`; `how` says how the figure follows from the answers.

    `high` is infinite if only a direction is published.
    """

    machine: str
    finding: str
    low: float
    high: float
    unit: str
    how: str
    commands: tuple[str, ...]
    source: str = field(default="", kw_only=True)


@dataclass(frozen=True)
class Row(Finding):
    """A published finding and its prediction."""

    predicted: float

    @property
    def error(self) -> float:
        """The error of the prediction against the nearest published value; 0 within the range."""
        nearest = min(max(self.predicted, self.low), self.high)
        return self.predicted / nearest - 1

    def as_json(self) -> dict[str, Any]:
        return {**vars(self), "high": None if math.isinf(self.high) else self.high, "error": self.error}


@dataclass(frozen=True)
class Claim(Finding):
    """A published finding, and how its figure is predicted from the answers of commands."""

    find: Find

    def row(self, answer: Callable[[str], Answer]) -> Row:
        """With the prediction."""
        published = {one.name: getattr(self, one.name) for one in fields(Finding)}
        return Row(**published, predicted=self.find(*map(answer, self.commands)))


def summary(rows: Sequence[Row]) -> str:
    """How far off they are: half of them and nine of ten."""
    errors = sorted(abs(row.error) for row in rows)
    most = errors[math.ceil(0.9 * len(errors)) - 1]
    far = sum(error > 0.3 for error in errors)
    median = f"median error {100 * statistics.median(errors):.0f} %, 90 % within {100 * most:.0f} %"
    return f"{len(rows)} figures: {median}, {far} off by more than 30 %"
