"""Pair by pair: bandwidth one way, both ways at once, latency; from the chosen paths."""

from __future__ import annotations

from dataclasses import dataclass

from waywiser.plan import Plan
from waywiser.profile import Pair, PairClass, Profile
from waywiser.units import format_rate, format_seconds

SMALL = 8  # bytes: the size at which latency is shown


@dataclass(frozen=True)
class Cell:
    """`value` is for the colour; `text` and `note` (relation, chosen mechanism) are for people."""

    value: float
    text: str
    note: str
    detail: str


@dataclass(frozen=True)
class Matrix:
    """Sources down, destinations across. `lower_is_better` for times."""

    title: str
    about: str
    places: tuple[str, ...]
    cells: dict[Pair, Cell]
    lower_is_better: bool = False

    @property
    def sources(self) -> tuple[str, ...]:
        """Those of the places that have a row: nothing is measured from the other machine."""
        return tuple(place for place in self.places if any(source == place for source, _ in self.cells))

    def share(self, cell: Cell) -> float:
        """0 (lowest value of this matrix) to 1 (highest); 0.5 when all are alike."""
        values = [one.value for one in self.cells.values()]
        low, high = min(values), max(values)
        return (cell.value - low) / (high - low) if high > 1.02 * low else 0.5


def _place_key(place: str) -> tuple[bool, bool, int]:
    here = place.removeprefix("other:")
    return here != place, not here.startswith("host"), int(here.lstrip("hostgpu"))


def places(profile: Profile) -> tuple[str, ...]:
    """host0, host1, ..., gpu0, gpu1, ..."""
    found = {place for group in profile.classes for pair in group.members for place in pair}
    return tuple(sorted(found, key=_place_key))


def relation(group: PairClass) -> str:
    """The words of a class name after the pair: "NV18"."""
    return group.name.partition(" ")[2][:24]


def _points(
    profile: Profile, plan: Plan | None, pair: Pair, processes: int, operation: str
) -> list[tuple[int, float, str]]:
    """(bytes, seconds, mechanism) of the chosen paths; of the fastest ones without a plan."""
    rows = plan.rows_of(pair, processes, operation) if plan else []
    found = [(size, seconds, row.path.mechanism) for row in rows for size, seconds in row.expected]
    if found:
        return sorted(found)
    series = profile.series_of(pair, processes, operation)
    return sorted((p.bytes, p.seconds, one.path.mechanism) for one in series for p in one.points)


def _rate_cell(points: list[tuple[int, float, str]], factor: int, group: PairClass) -> Cell:
    size, seconds, mechanism = max(points, key=lambda point: (point[0], -point[1]))
    rate = factor * size / seconds
    return Cell(rate, format_rate(rate), relation(group), mechanism)


def _latency_cell(points: list[tuple[int, float, str]], group: PairClass) -> Cell | None:
    usable = [point for point in points if point[0] >= SMALL]
    if not usable:
        return None
    smallest = usable[0][0]
    _, seconds, mechanism = min((p for p in usable if p[0] == smallest), key=lambda point: point[1])
    return Cell(seconds, format_seconds(seconds), relation(group), mechanism)


_KINDS = (
    ("Bandwidth one way", "streaming", "many transfers in flight, at the largest measured size", 1),
    (
        "Bandwidth both ways",
        "bidirectional",
        "both directions at once, the sum of the two, at the largest measured size",
        2,
    ),
    ("Latency", "latency", "the smallest measured size of at least 8 B, completion seen by the host", 0),
)


def matrices(profile: Profile, plan: Plan | None, processes: int) -> list[Matrix]:
    """The matrices of one number of processes; none where fewer than two pairs were measured."""
    found = []
    for title, operation, about, factor in _KINDS:
        cells: dict[Pair, Cell] = {}
        for group in (one for one in profile.classes if one.processes == processes):
            for pair in group.members:
                points = _points(profile, plan, pair, processes, operation)
                points = points or _points(profile, plan, profile.measured_pair(group), processes, operation)
                cell = (
                    (_rate_cell(points, factor, group) if factor else _latency_cell(points, group)) if points else None
                )
                if cell:
                    cells[pair] = cell
        if len(cells) > 1:
            reached = {place for _, place in cells}
            shown = tuple(one for one in places(profile) if one in reached or not one.startswith("other:"))
            found.append(Matrix(title, about, shown, cells, lower_is_better=not factor))
    return found
