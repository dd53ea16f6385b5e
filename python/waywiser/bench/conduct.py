"""Times an operation at one size: short slices of each library in turn, so that noise affects all alike."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from waywiser.bench.operations import Operation, window_of
from waywiser.bench.row import Figures, Row, figures_of
from waywiser.bench.team import NotOffered, TeamError, Timed
from waywiser.points import quantile

OURS = "waywiser"
# How calls are issued, as in src/waywiser/bench/bench_request.hpp; the last one: by a kernel.
MODES, FROM_KERNEL = ("blocking", "stream", "graph"), "kernel"
_SAMPLE = 30e-6  # seconds that a sample should take, so that the cost of reading the clock is negligible
# The same if the sample ends with a wait for a stream; last in modes in which calls do not wait for each other.
_GPU_SAMPLE, _ENQUEUED_SAMPLE = 300e-6, 1e-3
_MOST_IN_GRAPH = 50  # as in src/waywiser/bench/bench_request.hpp
_SLICE = 4e-3
_MOST_SAMPLES, _MOST_CALLS = 40, 5000
_LOOKS = ((3, 3), (20, 3), (50, 5))  # calls of a sample, samples
_LONG = 1e-3  # seconds of a call
_LEAST_ROUNDS, _MOST_ROUNDS = 3, 40
_PATIENCE = 60.0


@dataclass(frozen=True)
class Case:
    """One timed case: a row of the table."""

    operation: Operation
    memory: str  # "host", "gpu", or "host>gpu": of the first and the second of a pair, or input and output
    bytes: int
    mode: str = "blocking"  # of MODES, or FROM_KERNEL

    def request(self, calls: int, samples: int, seed: int, compute: float = 0.0) -> str:
        """The request in the form of src/waywiser/bench/bench_request.hpp."""
        given, _, taken = self.memory.partition(">")
        window = window_of(self.operation, self.bytes)
        words = (self.operation.name, given, taken or given, self.bytes, window, calls, samples, seed)
        return " ".join(str(word) for word in (*words, round(compute * 1e9), self.mode))

    def for_peers(self) -> Case:
        """For other libraries, memory in a window of our group is ordinary GPU memory."""
        return replace(self, memory=self.memory.replace("exposed", "gpu"))

    def calls_in(self, sample: float, seconds: float) -> int:
        """The number of calls of `seconds` in a sample."""
        calls = max(1, min(_MOST_CALLS, round(sample / seconds)))
        whole = self.mode == "graph" and calls > _MOST_IN_GRAPH
        return -(-calls // _MOST_IN_GRAPH) * _MOST_IN_GRAPH if whole else calls

    @property
    def sample(self) -> float:
        """Seconds that a slice should take."""
        if self.mode != "blocking":
            return _ENQUEUED_SAMPLE
        return _SAMPLE if self.memory == "host" else _GPU_SAMPLE


@dataclass
class Contender:
    """One of the libraries that are timed alternately, and its samples."""

    team: Timed
    calls: int = 1
    samples: int = 1
    compute: float = 0.0
    by_rank: list[list[float]] = field(default_factory=list)
    alone: list[float] = field(default_factory=list)

    def plan(self, case: Case, patience: float) -> None:
        """The number of calls in a sample, and of samples in a slice.

        The first calls connect and touch memory for the first time: if they are slow, more calls are examined.
        """
        if self.team.adapts:
            return
        self.team.slice(case.request(1, 1, 1), patience)
        for calls, samples in _LOOKS:
            found = self.team.slice(case.request(calls, samples, 2), patience)
            seconds = max(1e-9, max(quantile(times, 0.5) for times in found))
            self.calls = case.calls_in(case.sample, seconds)
            if seconds > _LONG or self.calls > calls:
                break
        self.samples = max(2, min(_MOST_SAMPLES, int(_SLICE / (self.calls * seconds))))
        if case.operation.shape == "overlap":
            self.alone = _all(self.team.slice(case.request(self.calls, self.samples, 3), patience))
            self.compute = quantile(self.alone, 0.5)

    def take(self, case: Case, seed: int, patience: float) -> None:
        """One slice."""
        if self.compute:
            self.alone += _all(self.team.slice(case.request(self.calls, self.samples, seed), patience))
        found = self.team.slice(case.request(self.calls, self.samples, seed, self.compute), patience)
        self.by_rank = [old + new for old, new in zip(self.by_rank or [[] for _ in found], found, strict=True)]

    def figures(self, case: Case) -> Figures:
        window = window_of(case.operation, case.bytes)
        alone = quantile(self.alone, 0.5) if self.alone else 0.0
        return figures_of(case.operation, self.by_rank, window, self.calls, self.compute, alone)


def _all(by_rank: Sequence[Sequence[float]]) -> list[float]:
    return [time for times in by_rank for time in times]


Tell = Callable[[str, str], None]


class Conductor:
    """Times cases. A failed team is reported once and left out; a failure of ours raises."""

    def __init__(self, ours: Timed, peers: Mapping[str, Timed], ranks: int, tell: Tell) -> None:
        self._teams = {OURS: ours, **peers}
        self._ranks = ranks
        self._tell = tell
        self._seed = 0
        self._told: set[tuple[str, str, str]] = set()

    def time(self, case: Case, budget: float, patience: float = _PATIENCE) -> Row | None:
        """A row, in about `budget` seconds, but at least three rounds; None if we do not offer it."""
        until = time.monotonic() + budget
        contenders = {name: Contender(team) for name, team in self._teams.items()}
        for name in list(contenders):
            there = self._guard(contenders, name, case, lambda one, own: one.plan(own, patience))
            if name == OURS and not there:
                return None
        for rounds in range(_MOST_ROUNDS):
            if rounds >= _LEAST_ROUNDS and time.monotonic() > until:
                break
            names = list(contenders)
            for name in names if rounds % 2 == 0 else reversed(names):
                self._seed += 1000
                self._guard(contenders, name, case, lambda one, own: one.take(own, self._seed, patience))
        figures = {name: one.figures(case) for name, one in contenders.items()}
        return Row(case.operation, case.memory, self._ranks, case.bytes, figures.pop(OURS), figures, mode=case.mode)

    def _guard(
        self, contenders: dict[str, Contender], name: str, case: Case, act: Callable[[Contender, Case], None]
    ) -> bool:
        try:
            act(contenders[name], case if name == OURS else case.for_peers())
            return True
        except NotOffered as error:
            mode = "" if case.mode == "blocking" else f", {case.mode}"
            what = f"{case.operation.name}, {case.memory}"
            if (name, what, str(error)) not in self._told:
                self._told.add((name, what, str(error)))
                self._tell(name, f"{what}{mode}: {error}")
        except TeamError as error:
            if name == OURS:
                raise
            self._tell(name, f"{case.operation.name} of {case.bytes} bytes: {error}; left out from here on")
            self._teams.pop(name).close()
        del contenders[name]
        return False
