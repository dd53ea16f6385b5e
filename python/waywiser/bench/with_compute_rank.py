"""A rank of `bench --with-compute`: a collective and a computation, alone and at once, in turn.

`waywiser run -n N python -m waywiser.bench.with_compute_rank ORDER`; rank 0 prints one line of JSON.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

from waywiser.bench.with_compute_sides import Computation, Side, host_side
from waywiser.errors import CorruptionError, Error, UnavailableError
from waywiser.group.group import Group
from waywiser.group.joining import join
from waywiser.look.job import started

_SAMPLE = {"host": 5e-3, "virtual_gpu": 5e-3, "cuda": 10e-3}  # seconds that a sample's calls take together
_MOST_CALLS = 200
_LEAST_SAMPLES, _MOST_SAMPLES = 3, 1_000


class Turns:
    """Samples of a collective by several groups, each with its own limit of blocks, beside a computation."""

    def __init__(
        self, groups: dict[int, Group], side: Side, operation: str, length: int, computing: Computation
    ) -> None:
        self._groups, self._side, self._computing = groups, side, computing
        self._first = next(iter(groups.values()))
        self._exercise = side.exercise(operation, length, self._first.rank, self._first.size)
        self._call = {blocks: self._exercise.call_of(group) for blocks, group in groups.items()}
        for blocks in groups:
            self._calls(blocks, 1)  # sets up
        once = self._slowest(*self._calls(next(iter(groups)), 2))[0] / 2
        self.calls = max(1, min(_MOST_CALLS, round(_SAMPLE[side.backend] / max(once, 1e-9))))
        computing.fit(self._slowest(*self._calls(next(iter(groups)), self.calls))[0], self._most)

    def _most(self, seconds: float) -> float:
        return float(self._first.all_reduce(seconds, op="max"))

    def _slowest(self, *seconds: float) -> tuple[float, ...]:
        return tuple(self._most(one) for one in seconds)

    def _run(self, blocks: int | None, calls: int, computes: bool) -> tuple[float, float, float]:
        """Seconds of the calls, of the computation, and of both; the data of all are checked."""
        self._exercise.fill()
        self._first.barrier()
        found = self._side.at_once(
            None if blocks is None else (self._call[blocks], calls), self._computing if computes else None
        )
        wrong = (blocks is not None and not self._exercise.is_right()) or (computes and not self._computing.is_right())
        if number := self._first.all_reduce(int(wrong), op="sum"):
            raise CorruptionError(f"{number} of {self._first.size} ranks have wrong data")
        return found

    def _calls(self, blocks: int, calls: int) -> tuple[float, float, float]:
        return self._run(blocks, calls, False)

    def take(self, seconds: float) -> list[dict[str, Any]]:
        """For each limit of blocks the medians of what was timed. All ranks stop after the same round."""
        kinds: list[tuple[int | None, bool]] = [(None, True)]
        kinds += [(blocks, computes) for blocks in self._groups for computes in (False, True)]
        found: dict[tuple[int | None, bool], list[tuple[float, ...]]] = {kind: [] for kind in kinds}
        begun, rounds, goes_on = time.perf_counter(), 0, True
        while goes_on:
            for blocks, computes in kinds if rounds % 2 == 0 else reversed(kinds):
                found[blocks, computes].append(self._slowest(*self._run(blocks, self.calls, computes)))
            rounds += 1
            enough = rounds >= _LEAST_SAMPLES and time.perf_counter() - begun > seconds
            goes_on = not self._first.broadcast(int(enough)) and rounds < _MOST_SAMPLES

        def median(kind: tuple[int | None, bool], which: int) -> float:
            return statistics.median(one[which] for one in found[kind])

        return [
            {
                "max_ctas": blocks, "calls": self.calls, "samples": rounds,
                "alone": median((blocks, False), 0) / self.calls, "beside": median((blocks, True), 0) / self.calls,
                "computation": median((None, True), 1), "computation_beside": median((blocks, True), 1),
                "at_once": median((blocks, True), 2),
            }
            for blocks in self._groups
        ]  # fmt: skip


def _rows(order: dict[str, Any], groups: dict[int, Group], side: Side) -> list[dict[str, Any]]:
    cases = [
        (operation, length, computing)
        for computing in order["computations"] for operation in order["operations"] for length in order["sizes"]
    ]  # fmt: skip
    rows: list[dict[str, Any]] = []
    for operation, length, computing in cases:
        turns = Turns(groups, side, operation, length, side.computation(computing))
        head = {"operation": operation, "bytes": length, "computing": computing}
        rows += [head | one for one in turns.take(order["seconds"] / len(cases))]
    return rows


def _cuda_side(backend: str) -> Side:
    try:
        from waywiser.bench.with_compute_cuda import CudaSide
    except ImportError as error:
        raise UnavailableError(f"--with-compute on GPUs computes with PyTorch: {error}") from error
    return CudaSide(started().rank)


def main() -> None:
    """Raises as the group."""
    order = json.loads(sys.argv[1])
    make: Callable[[str], Side] = _cuda_side if order["backend"] == "cuda" else host_side
    side = make(order["backend"])
    groups: dict[int, Group] = {}
    try:
        for blocks in order["blocks"]:
            groups[blocks] = join(gpus=side.gpus, timeout=order["timeout"], max_ctas=blocks)
        rows = _rows(order, groups, side)
        if groups[order["blocks"][0]].rank == 0:
            print(json.dumps({"rows": rows}), flush=True)
    finally:
        for group in groups.values():
            group.close()


if __name__ == "__main__":
    try:
        main()
    except Error as error:
        sys.exit(f"{type(error).__name__}: {error}")
