"""Times an operation at one size: short slices of each library in turn, so that noise affects all alike."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from waywiser import _core
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
_LEAST_ROUNDS, _MOST_ROUNDS = 3, 40
_PATIENCE = 60.0
Take = Callable[[int, int, bool], list[float] | None]


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

    def whole(self, calls: int) -> int:
        """As many calls, or a few more in whole graphs."""
        graphs = self.mode == "graph" and calls > _MOST_IN_GRAPH
        return -(-calls // _MOST_IN_GRAPH) * _MOST_IN_GRAPH if graphs else calls

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
    seconds: float = 0.0  # of a call, as last seen
    compute: float = 0.0
    by_rank: list[list[float]] = field(default_factory=list)
    alone: list[float] = field(default_factory=list)

    def take(self, case: Case, calls: int, seed: int, patience: float, counts: bool = True) -> list[float]:
        """A slice of samples of so many calls each: seconds of a call for each sample, of the slowest rank. Unless it
        `counts`, it is not kept."""
        self.calls = case.whole(calls)
        samples = max(2, min(_MOST_SAMPLES, int(_SLICE / (self.calls * self.seconds)))) if self.seconds else 1
        request = (self.calls, samples, seed)
        if case.operation.shape == "overlap" and self.seconds:
            self.alone += _all(self.team.slice(case.request(*request), patience))
            self.compute = self.compute or quantile(self.alone, 0.5)
        found = self.team.slice(case.request(*request, self.compute), patience)
        slowest = [max(times) for times in zip(*found, strict=True)]
        self.seconds = max(1e-9, quantile(slowest, 0.5))
        if counts:
            self.by_rank = [old + new for old, new in zip(self.by_rank or [[] for _ in found], found, strict=True)]
        return slowest

    def figures(self, case: Case) -> Figures:
        window = window_of(case.operation, case.bytes)
        alone = quantile(self.alone, 0.5) if self.alone else 0.0
        return figures_of(case.operation, self.by_rank, window, self.calls, self.compute, alone)


def contest(
    names: Sequence[str], take: Take, case: Case, seconds: float, least: int, most: int, hopeless: float = 0.0
) -> list[_core.Contender]:
    """Times `names` in interleaved rounds, in turns that take as long as the case wants."""
    return _core.contest(
        len(names), take, least=least, most=most, seconds=seconds, aim=case.sample, most_repetitions=_MOST_CALLS,
        hopeless=hopeless,
    )  # fmt: skip


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
        contenders = {name: Contender(team) for name, team in self._teams.items()}
        names = list(contenders)

        def take(which: int, calls: int, counts: bool) -> list[float] | None:
            name = names[which]
            self._seed += 1000
            own = case if name == OURS else case.for_peers()
            found = self._guard(name, case, lambda: contenders[name].take(own, calls, self._seed, patience, counts))
            if not found:
                del contenders[name]
                if name == OURS:
                    raise NotOffered
            return found

        try:
            contest(names, take, case, budget, _LEAST_ROUNDS, _MOST_ROUNDS)
        except NotOffered:
            return None
        figures = {name: one.figures(case) for name, one in contenders.items()}
        return Row(case.operation, case.memory, self._ranks, case.bytes, figures.pop(OURS), figures, mode=case.mode)

    def _guard(self, name: str, case: Case, act: Callable[[], list[float]]) -> list[float] | None:
        try:
            return act()
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
        return None
