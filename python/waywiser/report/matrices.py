"""Pair by pair: bandwidth one way, both ways at once, latency. Shows which cells are measurements of their own pair and
which represent a class of pairs, and the pairs that are slower than similar ones.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from waywiser.other_nodes import device_of, is_elsewhere
from waywiser.plan import Plan
from waywiser.profile import Pair, PairClass, Profile
from waywiser.units import format_bytes, format_rate, format_seconds

SMALL = 8  # bytes: the size at which latency is shown


ODD = 0.9  # of the median speed of the class: a slower pair is odd


@dataclass(frozen=True)
class Cell:
    """`value` sets the colour; `text` and `note` (relation, chosen mechanism) are shown.

    `measured`: the figure is of this pair; else it is of `of`, another pair of its class. `odd`: the figure of similar
    pairs.
    """

    value: float
    text: str
    note: str
    detail: str
    measured: bool = True
    of: Pair | None = None
    odd: str = ""


@dataclass(frozen=True)
class Matrix:
    """Sources down, destinations across. `lower_is_better` for times. `verb`: "measured" or "simulated"."""

    title: str
    about: str
    places: tuple[str, ...]
    cells: dict[Pair, Cell]
    lower_is_better: bool = False
    verb: str = "measured"

    @property
    def copies(self) -> int:
        """The number of cells that show another pair's figure."""
        return sum(not cell.measured for cell in self.cells.values())

    def odd(self) -> list[str]:
        """A line for each pair that is slower than similar pairs."""
        return [
            f"{source} to {destination} is odd: {cell.text}, pairs like it {cell.odd}"
            for (source, destination), cell in self.cells.items()
            if cell.odd
        ]

    @property
    def sources(self) -> tuple[str, ...]:
        """The places that have a row; places of the other machine have none, since nothing is measured from there."""
        return tuple(place for place in self.places if any(source == place for source, _ in self.cells))

    def share(self, cell: Cell) -> float:
        """0 (lowest value between different places) to 1 (highest), on a logarithmic scale; 0.5 if all are equal.

        A place and itself would take the whole scale: they set it only if there are no other pairs.
        """
        apart = [one.value for (source, destination), one in self.cells.items() if source != destination]
        return share(cell.value, apart or [one.value for one in self.cells.values()])


def share(value: float, values: list[float]) -> float:
    """Where `value` lies between the lowest (0) and highest (1) of `values`, on a logarithmic scale, all above zero."""
    low, high = min(values), max(values)
    if high <= 1.02 * low:
        return 0.5
    return min(1.0, max(0.0, math.log(value / low) / math.log(high / low)))


def _place_key(place: str) -> tuple[str, bool, int]:
    device = device_of(place)
    return place.removesuffix(device), not device.startswith("host"), int(device.lstrip("hostgpu"))


def places(profile: Profile) -> tuple[str, ...]:
    """host0, host1, ..., gpu0, gpu1, ..."""
    found = {place for group in profile.classes for pair in group.members for place in pair}
    return tuple(sorted(found, key=_place_key))


def relation(group: PairClass) -> str:
    """The part of a class name after the pair: "NV18"."""
    return group.kind.partition(" ")[2][:24]


def _points(
    profile: Profile, plan: Plan | None, pair: Pair, processes: int, operation: str
) -> list[tuple[int, float, str]]:
    """(bytes, seconds, mechanism) of the chosen paths; without a plan, of the fastest ones."""
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
    ("Bandwidth one way", "streaming", "many transfers in flight", 1),
    ("Bandwidth both ways", "bidirectional", "both directions at once, the sum of the two", 2),
    ("Latency", "latency", "the smallest size of at least 8 B, completion seen by the host", 0),
)


def matrices(profile: Profile, plan: Plan | None, processes: int) -> list[Matrix]:
    """The matrices of one number of processes; none if fewer than two pairs were measured."""
    found = []
    for title, operation, about, factor in _KINDS:
        cells: dict[Pair, Cell] = {}
        sizes: set[int] = set()
        for group in (one for one in profile.classes if one.processes == processes):
            cells |= _surveyed(profile, group, operation, factor, sizes) or _of_class(
                profile, plan, group, operation, factor, sizes
            )
        if len(cells) > 1:
            reached = {place for _, place in cells}
            shown = tuple(one for one in places(profile) if one in reached or not is_elsewhere(one))
            at = f", at {' and '.join(map(format_bytes, sorted(sizes)))}" if factor else ""
            found.append(Matrix(title, about + at, shown, cells, lower_is_better=not factor, verb=profile.verb))
    return found


def _surveyed(profile: Profile, group: PairClass, operation: str, factor: int, sizes: set[int]) -> dict[Pair, Cell]:
    """Every pair's own figure, all at one size; pairs without a figure get the typical one."""
    own: dict[Pair, Cell] = {}
    for pair in group.members:
        if series := profile.surveyed(pair, group.processes, operation):
            points = [(point.bytes, point.seconds, series.path.mechanism) for point in series.points]
            cell = _rate_cell(points, factor, group) if factor else _latency_cell(points, group)
            if cell:
                own[pair] = cell
                sizes.add(points[-1][0])
    if not own:
        return {}
    usual = sorted(own.values(), key=lambda cell: cell.value)[len(own) // 2]
    found = {pair: _marked(own[pair], usual, lower=not factor) for pair in own}
    middle = next(pair for pair, cell in own.items() if cell is usual)
    for pair in group.members:
        if pair not in own:
            found[pair] = replace(usual, measured=False, of=middle)
    return found


def _marked(cell: Cell, usual: Cell, lower: bool) -> Cell:
    share = usual.value / cell.value if lower else cell.value / usual.value
    return replace(cell, odd=usual.text) if share < ODD else cell


def _of_class(
    profile: Profile, plan: Plan | None, group: PairClass, operation: str, factor: int, sizes: set[int]
) -> dict[Pair, Cell]:
    """The figure of the measured pair, for all pairs of the class."""
    measured = profile.measured_pair(group)
    points = _points(profile, plan, measured, group.processes, operation)
    cell = (_rate_cell(points, factor, group) if factor else _latency_cell(points, group)) if points else None
    if cell is None:
        return {}
    sizes.add(max(points)[0])
    own = {pair: _points(profile, None, pair, group.processes, operation) for pair in group.members if pair != measured}
    found = {measured: cell} | {pair: replace(cell, measured=False, of=measured) for pair in own}
    for pair, mine in own.items():  # from `measure --pairs all`, into an older class
        if mine and (each := _rate_cell(mine, factor, group) if factor else _latency_cell(mine, group)):
            found[pair] = each
    return {pair: found[pair] for pair in group.members}
