"""`waywiser bench offload`: two arrays go to a GPU, are added, and come back; a server's GPU beside a local one."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from waywiser import _core
from waywiser.errors import CorruptionError, InputError
from waywiser.offload.client import POINTS

if TYPE_CHECKING:
    import numpy.typing

    from waywiser.group.gpus import Gpus
    from waywiser.offload.client import DataRoad, RemoteGpu
    from waywiser.stages import Show

    Floats = numpy.typing.NDArray[numpy.float32]

SIZES = tuple(4 * count * 1_000_000 for count in (10, 20, 50, 100, 200, 400))  # bytes of one array
SMALL_SIZES = tuple(4 * count for count in (10_000, 30_000, 100_000, 300_000, 1_000_000))
TIMES = (1, 10, 100)
MOST_TIMES = 100_000
LOCAL, LOCAL_PINNED = "local, pageable", "local, pinned"
_LEAST, _MOST = 3, 15  # rounds of a case
_IN_CACHE = 16384  # elements


@dataclass(frozen=True)
class Run:
    """One run. `seconds`: at the seven points, in the order of POINTS. `whole`: as the client sees it.

    `spans`: when the last request began and ended at each point but the device's, by the client's clock, from the
    beginning of the run; the server's are right within `clock_error`. Empty for a local GPU.
    """

    seconds: tuple[float, ...]
    whole: float
    spans: tuple[tuple[float, float], ...] = ()
    clock_error: float = 0.0

    def at(self, point: str) -> float:
        """The seconds at one of POINTS."""
        return self.seconds[POINTS.index(point)]

    @property
    def overhead(self) -> float:
        """Input and output as the client sees them, and the computation as the device sees it less as the server does:
        the formula of the published experiment. It leaves out the messages of the call itself.
        """
        return self.at("client_input") + self.at("device") + self.at("client_output") - self.at("server_compute")


@dataclass(frozen=True)
class Case:
    """The run of median length of a road, for two arrays of `elements` numbers that are added `times` times."""

    road: str
    elements: int
    times: int
    run: Run
    rounds: int


class Side(Protocol):
    """A GPU that adds: result = a + times * b."""

    def add(self, a: Floats, b: Floats, times: int) -> tuple[Floats, Run]: ...


def remote_road(road: DataRoad, plain: bool = False) -> str:
    """What a row is called. `plain`: its arrays are not encrypted between machines, by --data-plain."""
    return f"remote, {road}{', data plain' if plain else ''}"


def network_road(network: str, road: DataRoad) -> str:
    """What a row is called whose arrays go over one network, as the simulated ones are: "eth0, pinned"."""
    return f"{network}, {road}"


class RemoteSide:
    """A server's GPU, whose server moves the bytes by one road."""

    def __init__(self, gpu: RemoteGpu, road: DataRoad) -> None:
        self._gpu, self._road = gpu, road
        self._offset, self._error = gpu._core.align_clocks(64)

    def add(self, a: Floats, b: Floats, times: int) -> tuple[Floats, Run]:
        """The result and the run."""
        core = self._gpu._core
        self._gpu.use_road(self._road)
        before = core.times()
        begin = time.monotonic()
        x, y = self._gpu.array(a), self._gpu.array(b)
        total = self._gpu.run("repeat_add", x, y, times=times)
        self._gpu.synchronize()
        result = total.get()
        whole = time.monotonic() - begin
        after = core.times()
        spans = []
        for point, (_, first, last) in zip(POINTS, after, strict=True):
            shift = begin + (0.0 if point.startswith("client") else self._offset)
            if point != "device":
                spans.append((first - shift, last - shift))
        seconds = tuple(now[0] - then[0] for now, then in zip(after, before, strict=True))
        return result, Run(seconds, whole, tuple(spans), self._error)


class LocalSide:
    """A GPU of this process. What the client and the server see is one. `pinned`: the program keeps its arrays in
    page-locked memory, the result too; else in ordinary memory, and the result in a new array.
    """

    def __init__(self, gpus: Gpus, pinned: bool = False) -> None:
        self._gpus, self._pinned = gpus, pinned
        self._room: Any = None

    def _page_locked(self, like: Floats) -> list[Floats]:
        """Three arrays of the program."""
        import numpy

        if self._room is None or self._room.nbytes < 3 * like.nbytes:
            self._room = None  # before there are two
            self._room = self._gpus._core.pinned(3 * like.nbytes)
        room = self._room[: 3 * like.nbytes].view(numpy.float32)
        return [room[i * like.size : (i + 1) * like.size] for i in range(3)]

    def add(self, a: Floats, b: Floats, times: int) -> tuple[Floats, Run]:
        """The result and the run."""
        if self._pinned:
            values, (a, b, result) = (a, b), self._page_locked(a)
            a[:], b[:] = values
        begin = time.monotonic()
        x, y = self._gpus.array(a), self._gpus.array(b)
        there = time.monotonic()
        total = self._gpus.empty(a.shape, a.dtype)
        device = _core.add_here(total._memory, x._memory, y._memory, a.size, times)
        over = time.monotonic()
        if self._pinned:
            total._memory.read(result)
        else:
            result = total.numpy()
        end = time.monotonic()
        put, compute, get = there - begin, over - there, end - over
        return result, Run((put, put, compute, compute, device, get, get), end - begin)


def cases(
    sides: dict[str, Side], sizes: Sequence[int], times: Sequence[int], budget: float, show: Show
) -> Iterator[Case]:
    """Times all cases, each in one contest of the sides. Every result is compared with the CPU's, bit by bit.

    Raises CorruptionError for a wrong one.
    """
    import numpy

    draw = numpy.random.default_rng(0)
    roads = list(sides)
    total = len(sizes) * len(times)
    for done, (size, count) in enumerate((size, count) for size in sizes for count in times):
        show(done, total, budget * (1 - done / total), f"{size // 4} elements, {count} times")
        found: dict[str, list[Run]] = {road: [] for road in sides}
        a = draw.random(size // 4, numpy.float32)
        b = draw.random(size // 4, numpy.float32)
        numbers = (a, b, added(a, b, count))

        def take(
            which: int, _calls: int, counts: bool, count: int = count, found: Any = found, numbers: Any = numbers
        ) -> list[float]:
            # Rounding is the same with either sign: the sum is known, and no result of the turn before is right.
            for each in numbers:
                numpy.negative(each, out=each)
            road = roads[which]
            result, run = sides[road].add(numbers[0], numbers[1], count)
            if not numpy.array_equal(result, numbers[2]):
                raise CorruptionError(f"{road}: the sum of {numbers[0].size} elements is not that of the CPU")
            if counts:  # the first one makes memory
                found[road].append(run)
            return [run.whole]

        _core.contest(len(roads), take, least=_LEAST, most=_MOST, seconds=budget / total)
        for road, runs in found.items():
            yield Case(road, size // 4, count, median(runs), len(runs))
    show(total, total, 0.0, "")


def added(a: Floats, b: Floats, times: int) -> Floats:
    """a + b + ... + b, as the GPU adds."""
    total: Floats = a.copy()
    for first in range(0, total.size, _IN_CACHE):
        part, more = total[first : first + _IN_CACHE], b[first : first + _IN_CACHE]
        for _ in range(times):
            part += more
    return total


def median(runs: Sequence[Run]) -> Run:
    """The run whose whole time is the median: its points belong together."""
    middle = statistics.median_low(run.whole for run in runs)
    return next(run for run in runs if run.whole == middle)


def check_sizes(sizes: Sequence[int]) -> None:
    """Raises InputError for sizes that are no whole numbers of float32."""
    if any(size < 4 or size % 4 or size > 1 << 34 for size in sizes):
        raise InputError("offload: --sizes are the bytes of one array of float32 numbers, from 4 to 16G")
