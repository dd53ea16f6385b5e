"""Runs all cases of a command line, one after the other, within its budget."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from waywiser.bench.conduct import FROM_KERNEL, Case, Conductor
from waywiser.bench.operations import Operation
from waywiser.bench.row import Row
from waywiser.bench.team import Timed
from waywiser.stages import Show

Tell = Callable[[str, str], None]


@dataclass(frozen=True)
class Wanted:
    """The request of the command line. `sizes` empty: each operation's own."""

    operations: Sequence[Operation]
    memory: Sequence[str]
    sizes: Sequence[int]
    ranks: int
    budget: float
    modes: Sequence[str] = ("blocking",)  # for GPU arrays

    def cases(self) -> list[Case]:
        """The cases in the order of the output, without start-up."""
        return [
            Case(operation, memory, size, mode)
            for operation in self.operations
            if operation.shape != "startup"
            for memory in (self.memory if operation.sized else self.memory[:1])
            for mode in (("blocking",) if "host" in memory and FROM_KERNEL not in self.modes else self.modes)
            for size in self._sizes(operation)
        ]

    def _sizes(self, operation: Operation) -> Sequence[int]:
        if not operation.sized:
            return (0,)
        low, high = operation.sizes
        return self.sizes or [1 << power for power in range(51) if low <= 1 << power <= high]


def timed(wanted: Wanted, ours: Timed, peers: Mapping[str, Timed], show: Show, tell: Tell) -> Iterator[Row]:
    """Yields each row as soon as it is complete."""
    conductor = Conductor(ours, peers, wanted.ranks, tell)
    cases = wanted.cases()
    until = time.monotonic() + wanted.budget
    for done, case in enumerate(cases):
        left = max(0.0, until - time.monotonic())
        show(done, len(cases), left, f"{case.operation.name} {case.memory} {case.bytes}")
        row = conductor.time(case, left / (len(cases) - done))
        if row is not None:
            yield row
    show(len(cases), len(cases), 0.0, "")
