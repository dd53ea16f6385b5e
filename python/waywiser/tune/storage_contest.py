"""The turns of `waywiser tune --storage`: which ways are timed at which sizes, how often, and what that says."""

from __future__ import annotations

import itertools
import json
import math
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import waywiser._core as _core
from waywiser.errors import CorruptionError, Error
from waywiser.tune.storage_ways import SMALL, Case, alike

if TYPE_CHECKING:
    from waywiser.stages import Show

Take = Callable[[str, str, str, int], float]  # memory, work, way, bytes: the seconds of a turn
Clock = Callable[[], float]
LIMIT = 1.05  # a choice that takes no longer than this times the fastest way is as good
_LOOKS, _HOPELESS = 3, 2.0  # rounds of all; who is that much slower than the fastest has one
_LEAST, _MOST, _RIVAL = 5, 61, 1.3  # rounds of those that were no slower than that, once
_KNOWN = 6  # turns whose least and largest are an interval
_FIRST, _BETWEEN = 0.5, 0.75  # until these parts of the time: the sizes, those between them; then what is not clear
_STEP = 3.0  # sizes between two others differ by less
_SITTING, _DISTURBED = 0.5, 0.1  # seconds


def sizes_between(sizes: Sequence[int]) -> list[int]:
    """Where lines through the times at `sizes` are checked: as far from them as can be."""
    found = []
    for low, high in itertools.pairwise(sizes):
        steps = math.ceil(math.log(high / low) / math.log(_STEP))
        found += [round(low * (high / low) ** (step / steps)) for step in range(1, steps)]
    return found


class Cell:
    """The times of ways at one size. Those of a sitting took turns, so that what the machine did meanwhile is in all of
    them: ways are compared by the ratios of turns of the same round."""

    def __init__(self) -> None:
        self.sittings: list[Mapping[str, Sequence[float]]] = []
        self.same: dict[str, str] = {}  # ways that do the same as another one here
        self._ratios: dict[str, tuple[float, float, float]] = {}
        self._pairs: dict[str, int] = {}

    def add(self, samples: Mapping[str, Sequence[float]]) -> None:
        if samples:
            self.sittings.append(samples)
            self._ratios = {}

    def best(self) -> str:
        """The fastest of those that took part to the end."""
        return min(self.sittings[-1], key=lambda way: statistics.median(self.samples(way)))

    def ratios(self) -> dict[str, tuple[float, float, float]]:
        """Of each way the time over that of the best: the median, and its 95 % interval."""
        if self.sittings and not self._ratios:
            best = self.best()
            for way in self._ways():
                both = [(one[way], one[best]) for one in self.sittings if way in one and best in one]
                pairs = [mine / its for two in both for mine, its in zip(*two, strict=False)]
                self._ratios[way], self._pairs[way] = _median(pairs), len(pairs)
        return self._ratios

    def near(self) -> set[str]:
        """The ways that may be the fastest, once noise is away."""
        return {way for way, (middle, low, _) in self.ratios().items() if min(middle, low * LIMIT) <= _RIVAL}

    def unclear(self) -> list[str]:
        """The ways of which it is not clear whether they are as good as the best; with them the best. A few turns are
        an interval only for those that are far from it."""
        ratios = self.ratios()
        limits = {way: LIMIT if count >= _KNOWN else _RIVAL for way, count in self._pairs.items()}
        open_ones = [way for way, (_, low, high) in ratios.items() if low <= limits[way] and high > LIMIT]
        return [self.best(), *open_ones] if open_ones else []

    def points(self, size: int) -> dict[str, dict[str, Any]]:
        """Of a profile. The intervals are of the times over that of the best: what slows all alike makes none wider."""
        found = {}
        for way, (ratio, low, high) in self.ratios().items():
            (one,) = _core.contest(1, lambda *_, way=way: self.samples(way), least=1, most=1, looks=0)
            point = json.loads(one.point(size))
            seconds = statistics.median(self.samples(self.best()))
            found[way] = {**point, "seconds": seconds * ratio, "low": seconds * low, "high": seconds * high}
        return found | {way: found[first] for way, first in self.same.items() if first in found}

    def _ways(self) -> list[str]:
        return list(dict.fromkeys(way for one in self.sittings for way in one))

    def samples(self, way: str) -> list[float]:
        return [seconds for one in self.sittings for seconds in one.get(way, ())]


def _median(values: Sequence[float]) -> tuple[float, float, float]:
    """With its 95 % interval by ranks."""
    found = sorted(values)
    half, middle = math.ceil(0.98 * math.sqrt(len(found))), len(found) // 2
    low, high = found[max(0, middle - half)], found[min(len(found) - 1, middle + half)]
    return statistics.median(found), low, high


def timed(
    take: Take,
    cases: Sequence[Case],
    ways_of: Callable[[Case], Sequence[str]],
    seconds: float,
    show: Show,
    between: Sequence[int] = (),
    clock: Clock = time.monotonic,
) -> dict[Case, Cell]:
    """Times all ways of all cases in half of the time, then at the sizes `between` those that may be the fastest beside
    them, and in the rest, at several times, those of which it is not clear yet. Without time: each way of a case once.
    """
    begin, cells = clock(), dict[Case, Cell]()
    works = dict.fromkeys(case[:2] for case in cases)
    more = [(*work, size) for work in works for size in between] if seconds > 0 else []
    more = [case for case in more if len(_neighbours(case, cases)) == 2]
    total = len(cases) + len(more)

    def tell(case: Case, done: int) -> None:
        show(done, total, max(begin + seconds - clock(), 0.0), " ".join(map(str, case)))

    slow: set[tuple[str, str, str]] = set()
    for done, (case, until) in enumerate(_shares(cases, begin + seconds * _FIRST, clock)):
        tell(case, done)
        ways = [way for way in ways_of(case) if (*case[:2], way) not in slow]
        cells[case] = _first_look(take, case, ways, until - clock(), clock)
        ratios = cells[case].ratios()
        slow |= {(*case[:2], way) for way, one in ratios.items() if one[0] > _HOPELESS and case[2] > SMALL}
    for done, (case, until) in enumerate(_shares(more, begin + seconds * _BETWEEN, clock), len(cases)):
        tell(case, done)
        beside = [cells[each] for each in _neighbours(case, cases)]
        ways = [way for way in ways_of(case) if any(each.same.get(way, way) in each.near() for each in beside)]
        cells[case] = _first_look(take, case, ways, until - clock(), clock)
    while (left := begin + seconds - clock()) > 0 and (unclear := [case for case in cells if cells[case].unclear()]):
        case = min(unclear, key=lambda each: len(cells[each].sittings))
        tell(case, total)
        ways = cells[case].unclear()
        cells[case].add(_sitting(take, case, ways, _LEAST, _MOST, min(_SITTING, left), clock))
    show(total, total, 0.0, "")
    return cells


def _neighbours(case: Case, cases: Sequence[Case]) -> list[Case]:
    """The cases of the same work with the sizes around it."""
    same = [each for each in cases if each[:2] == case[:2]]
    below = [each for each in same if each[2] < case[2]]
    above = [each for each in same if each[2] > case[2]]
    return [*sorted(below, key=lambda each: each[2])[-1:], *sorted(above, key=lambda each: each[2])[:1]]


def _shares(cases: Sequence[Case], end: float, clock: Clock) -> Iterator[tuple[Case, float]]:
    """Each case with the end of its time: what others leave goes to those that follow."""
    for done, case in enumerate(cases):
        now = clock()
        yield case, now + (end - now) / (len(cases) - done)


def _first_look(take: Take, case: Case, ways: Sequence[str], seconds: float, clock: Clock) -> Cell:
    """Ways that do the same are timed as one; those that may be the fastest have most of the time."""
    memory, work, size = case
    cell, firsts = Cell(), dict[tuple[object, ...], str]()
    for way in ways:
        first = firsts.setdefault(alike(memory, work, way, size), way)
        if first != way:
            cell.same[way] = first
    until = clock() + max(seconds, 0.0)
    looks = 1 if seconds <= 0 else _LOOKS
    cell.add(_sitting(take, case, list(firsts.values()), looks, _LOOKS, seconds / 2, clock, 1, _HOPELESS))
    if seconds > 0 and cell.sittings:
        best = cell.best()
        fastest = statistics.median(cell.sittings[0][best])
        unlucky = [way for way, samples in cell.sittings[0].items() if _may_be_unlucky(samples, fastest)]
        if unlucky:
            cell.add(_sitting(take, case, [best, *unlucky], 1, 1, 0, clock))
        rivals = [way for way in cell.ratios() if min(cell.samples(way)) <= _RIVAL * fastest]
        cell.add(_sitting(take, case, rivals, _LEAST, _MOST, until - clock(), clock))
    return cell


def _may_be_unlucky(samples: Sequence[float], fastest: float) -> bool:
    """One turn alone, hopeless, and no longer than the system may have let it wait."""
    return len(samples) == 1 and _HOPELESS * fastest < samples[0] < _HOPELESS * fastest + _DISTURBED


def _sitting(
    take: Take,
    case: Case,
    ways: Sequence[str],
    least: int,
    most: int,
    seconds: float,
    clock: Clock,
    looks: int = 0,
    hopeless: float = 0,
) -> dict[str, list[float]]:
    """Rounds of those that serve the case."""
    memory, work, size = case

    def turn(which: int, _calls: int, _counts: bool) -> list[float] | None:
        try:
            return [take(memory, work, ways[which], size)]
        except CorruptionError:
            raise
        except Error:
            return None

    found = _core.contest(
        len(ways), turn, least=least, most=most, seconds=max(seconds, 0.0), looks=looks, hopeless=hopeless, clock=clock
    )
    return {way: list(one.samples) for way, one in zip(ways, found, strict=True) if one.offered and one.samples}
