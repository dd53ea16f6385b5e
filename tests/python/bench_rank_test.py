"""A Python rank of `waywiser bench`: how its calls are issued, and that wrong data is found."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy
import pytest

from waywiser.bench.python_rank import _Exercise, _slice
from waywiser.bench.rank_request import NotThere, Place, Request


class Queue:
    """A library of one rank whose calls copy when `finish` comes, as on a stream."""

    rank, size, version, memory = 0, 1, "made up", "gpu"

    def __init__(self, graphs: bool = True) -> None:
        self.waiting: list[Callable[[], None]] = []
        self.graphs = graphs
        self.log: list[str] = []
        self.corrupt = False

    def array(self, count: int, numbers: bool, memory: str) -> Any:
        return numpy.zeros(count, numpy.float32 if numbers else numpy.uint8)

    def write(self, array: Any, values: Any) -> None:
        array[: len(values)] = values

    def read(self, array: Any) -> Any:
        return array

    def barrier(self) -> None:
        self.log.append("barrier")

    def finish(self) -> None:
        self.log.append(f"finish {len(self.waiting)}")
        for call in self.waiting:
            call()
        self.waiting.clear()

    def call(self, request: Request, place: Place, give: Any, take: Any) -> Callable[[], object]:
        def copy() -> None:
            take[:] = give
            take[-1] += self.corrupt

        return lambda: self.waiting.append(copy)

    def record(self, calls: Callable[[], None]) -> Callable[[], None]:
        if not self.graphs:
            raise NotThere("no graphs")
        assert not self.waiting
        calls()
        captured = list(self.waiting)
        self.waiting.clear()
        self.log.append(f"captured {len(captured)}")
        return lambda: self.waiting.extend(captured)


def timed(library: Queue, calls: int, mode: str, memory: str = "gpu") -> list[str]:
    """The calls of `library` between the barriers of a slice with one sample."""
    request = Request.read(f"all_reduce {memory} {memory} 64 1 {calls} 1 7 0 {mode}")
    assert len(_slice(library, _Exercise(library, request), request)) == 1
    last = [index for index, word in enumerate(library.log) if word == "barrier"]
    return library.log[last[-2] + 1 : last[-1]]


def test_blocking_calls_wait_one_by_one_and_enqueued_ones_once() -> None:
    assert timed(Queue(), 3, "blocking") == ["finish 1"] * 3 + ["finish 0"]
    assert timed(Queue(), 3, "stream") == ["finish 3"]
    host = Queue()
    host.memory = "host"
    assert timed(host, 3, "blocking", "host") == ["finish 3"]  # each is complete when it returns
    with pytest.raises(NotThere, match="host memory only"):
        timed(host, 3, "blocking")


def test_graphs_are_captured_before_the_clock_starts_and_replayed_whole() -> None:
    library = Queue()
    assert timed(library, 150, "graph") == ["finish 150"]
    assert library.log.count("captured 50") == 1
    with pytest.raises(NotThere):
        timed(Queue(graphs=False), 5, "graph")


def test_wrong_data_is_found_in_every_mode() -> None:
    for mode in ("blocking", "stream", "graph"):
        library = Queue()
        library.corrupt = True
        with pytest.raises(ValueError, match="not what was sent"):
            timed(library, 5, mode)
