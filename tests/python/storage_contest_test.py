"""The turns of `waywiser tune --storage`: what it times at which sizes, and what it concludes."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest

from waywiser.tune.storage_contest import LIMIT, Cell, sizes_between, timed
from waywiser.tune.storage_ways import CACHED, HOST, READ, Case

SIZES = (4 << 10, 64 << 10, 256 << 10, 1 << 20)
CASES = [(HOST, READ, size) for size in SIZES]
WAYS = ("buffered", "io_uring", "direct", "mmap")


class Machine:
    """Its clock goes on by the turns alone."""

    def __init__(self, seconds: Callable[[str, int], float]) -> None:
        self.seconds, self.now = seconds, 0.0
        self.turns: Counter[tuple[str, int]] = Counter()

    def take(self, _memory: str, _work: str, way: str, size: int) -> float:
        self.turns[way, size] += 1
        took = self.seconds(way, size)
        self.now += took
        return took

    def timed(self, seconds: float, between: tuple[int, ...] = ()) -> dict[Case, Cell]:
        return timed(self.take, CASES, lambda _: WAYS, seconds, lambda *_: None, between, lambda: self.now)


def test_sizes_between_lie_evenly_and_close() -> None:
    found = sizes_between(SIZES)
    assert found == [10321, 26008, 131072, 524288]
    both = sorted({*SIZES, *found})
    assert max(high / low for low, high in itertools.pairwise(both)) < 3


def test_between_two_sizes_only_those_that_may_be_the_fastest_are_timed() -> None:
    slow = {"buffered": 1.0, "io_uring": 1.2, "direct": 1.1, "mmap": 5.0}
    machine = Machine(lambda way, size: 1e-9 * size * slow[way])
    cells = machine.timed(60, (131072,))
    assert set(cells[HOST, READ, 131072].points(131072)) == set(WAYS) - {"mmap"}
    assert set(cells[HOST, READ, 65536].points(65536)) == set(WAYS)
    assert machine.timed(0, (131072,)).keys() == set(CASES), "without time the sizes between are left out"


def test_a_way_that_is_better_between_two_sizes_alone_is_seen() -> None:
    def seconds(way: str, size: int) -> float:
        return size * 1e-9 * {"buffered": 1.0, "io_uring": 1.05 if size in SIZES else 0.7}.get(way, 1.25)

    points = Machine(seconds).timed(60, tuple(sizes_between(SIZES)))[HOST, READ, 524288].points(524288)
    assert points["buffered"]["seconds"] == pytest.approx(524288e-9)
    assert points["io_uring"]["seconds"] == pytest.approx(0.7 * 524288e-9)


def test_what_slows_all_ways_alike_is_not_in_the_intervals() -> None:
    draw, load = np.random.default_rng(1), [1.0]

    def seconds(way: str, _size: int) -> float:
        load[0] = min(10.0, max(1.0, load[0] * math.exp(draw.normal(0, 0.02))))  # of other jobs, and it wanders
        return 1e-3 * load[0] * {"buffered": 1.0, "io_uring": 1.1}.get(way, 9)

    points = Machine(seconds).timed(60)[HOST, READ, 4096].points(4096)
    fast, slow = points["buffered"], points["io_uring"]
    assert fast["low"] == fast["seconds"] == fast["high"], "others are compared with it"
    assert slow["low"] / fast["seconds"] > LIMIT and slow["high"] / fast["seconds"] < 1.2


def test_a_way_is_not_lost_by_one_turn_in_which_the_system_let_it_wait() -> None:
    def seconds(way: str, size: int) -> float:
        waits = way == "buffered" and machine.turns[way, size] == 2  # the first one that counts
        return 1e-4 * {"buffered": 1.0, "io_uring": 1.2}.get(way, 9) + (0.01 if waits else 0)

    machine = Machine(seconds)
    points = machine.timed(60)[HOST, READ, 4096].points(4096)
    assert points["buffered"]["seconds"] == pytest.approx(1e-4) and points["buffered"]["samples"] > 50


def test_time_that_is_left_goes_to_what_is_not_clear() -> None:
    draw = np.random.default_rng(2)

    def seconds(way: str, size: int) -> float:
        noise = math.exp(draw.normal(0, 0.3)) if size == 65536 else 1.0
        return 1e-3 * {"buffered": 1.0, "io_uring": 1.2}.get(way, 9) * noise

    machine = Machine(seconds)
    cells = machine.timed(60)
    assert (
        min(machine.turns["buffered", 65536], machine.turns["io_uring", 65536]) > 1.5 * machine.turns["buffered", 4096]
    )
    assert machine.turns["mmap", 65536] < 10, "which is clearly slow"
    ratio, low, high = cells[HOST, READ, 65536].ratios()["io_uring"]
    assert low > LIMIT and ratio == pytest.approx(1.2, rel=0.15) and high < 1.5
    assert not cells[HOST, READ, 65536].unclear() and machine.now < 60


def test_the_time_ends_it() -> None:
    draw = np.random.default_rng(3)
    machine = Machine(lambda _way, _size: 1e-3 * math.exp(draw.normal(0, 0.5)))
    machine.timed(20, tuple(sizes_between(SIZES)))
    assert 10 < machine.now < 21


def test_ways_that_do_the_same_are_timed_as_one() -> None:
    taken: list[str] = []

    def take(_memory: str, _work: str, way: str, size: int) -> float:
        taken.append(way)
        return size * 1e-9

    for size, same in ((65536, True), (4 << 20, False)):
        taken.clear()
        case = (HOST, CACHED, size)
        ways = ["buffered", "buffered(threads=4)", "mmap"]
        points = timed(take, [case], lambda _, ways=ways: ways, 0, lambda *_: None)[case].points(size)
        assert set(taken) == ({"buffered", "mmap"} if same else set(ways))
        assert points.keys() == set(ways)
