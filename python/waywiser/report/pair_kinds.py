"""Classes of pairs that a reader need not tell apart: same relation, same paths, times within 10 %.

A machine with two sockets has a class for each pair of sockets, with nearly the same figures in each.
"""

from __future__ import annotations

from dataclasses import dataclass

from waywiser.profile import PairClass
from waywiser.report.choices import Choice, joined

TOLERANCE = 1.1


@dataclass(frozen=True)
class Kind:
    """`shown` stands for itself and for `others`, whose figures are within 10 % of it."""

    shown: PairClass
    others: tuple[PairClass, ...]

    @property
    def note(self) -> str:
        """ "and 3 classes like it (within 10 %)"; empty if it stands for itself alone."""
        count = len(self.others)
        return f"and {count} class{'es' if count > 1 else ''} like it (within 10 %)" if count else ""


def kinds(rows: list[Choice]) -> list[Kind]:
    """The classes of `rows` in their order; each class is in exactly one kind."""
    mine: dict[PairClass, list[Choice]] = {}
    for row in joined(rows):
        mine.setdefault(row.group, []).append(row)
    found: list[tuple[PairClass, list[PairClass]]] = []
    for group in mine:
        like = next((others for shown, others in found if _alike(shown, group, mine)), None)
        if like is None:
            found.append((group, []))
        else:
            like.append(group)
    return [Kind(shown, tuple(others)) for shown, others in found]


def _alike(a: PairClass, b: PairClass, rows: dict[PairClass, list[Choice]]) -> bool:
    same = (a.kind, a.processes) == (b.kind, b.processes) and len(rows[a]) == len(rows[b])
    return same and all(_close(one, other) for one, other in zip(rows[a], rows[b], strict=True))


def _close(a: Choice, b: Choice) -> bool:
    if (a.operation, a.path.mechanism) != (b.operation, b.path.mechanism):
        return False
    figures = ((a.first_seconds, b.first_seconds), (a.rate, b.rate))
    return all(high <= TOLERANCE * low for low, high in (sorted(pair) for pair in figures))


def merged(rows: list[Choice]) -> list[tuple[Kind, Choice]]:
    """The joined rows of the shown classes, each with its kind."""
    by_group = {kind.shown: kind for kind in kinds(rows)}
    return [(by_group[row.group], row) for row in joined(rows) if row.group in by_group]
