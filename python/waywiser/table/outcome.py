"""What a shuffle has reached beside its lower bound: the same bytes as bare messages."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, NamedTuple

from waywiser.table.paths import PathOutcome, by_way, of_all_ranks
from waywiser.units import format_bytes, format_percent, format_rate, format_seconds

if TYPE_CHECKING:
    from waywiser.group.group import Group


class ShuffleOutcome(NamedTuple):
    """Of all ranks: the rank that has sent most bytes to others, and how many; the seconds of the slowest rank; how
    many bare messages of the same bytes take, from all ranks at once; what has gone from each rank to each other one.
    Printed, it says what part of the messages' rate the shuffle has reached, and, in a line for each, by which ways.
    """

    busiest: int
    bytes: int
    seconds: float
    bound: float
    paths: list[PathOutcome]

    def as_json(self) -> dict[str, Any]:
        """The fields, and the paths as objects."""
        return {**self._asdict(), "paths": [path.as_json() for path in self.paths]}

    def __str__(self) -> str:
        if self.bytes == 0:
            return f"no rank has sent to another one; {format_seconds(self.seconds)}"
        rates = [format_rate(self.bytes / seconds) for seconds in (self.seconds, self.bound)]
        first = (
            f"rank {self.busiest} has sent most, {format_bytes(self.bytes)}, in {format_seconds(self.seconds)}: "
            f"{rates[0]}; as bare messages {format_seconds(self.bound)}, {rates[1]}: "
            f"{format_percent(self.bound / self.seconds)} of their rate"
        )
        return "\n".join([first, *by_way(self.paths)])


def outcome(
    group: Group, out: list[int], come: list[int], seconds: float, piece: int, paths: list[PathOutcome]
) -> ShuffleOutcome:
    """`out`, `come`: bytes to and from each rank, 0 for this one; `paths`: out of this rank. All ranks call it."""
    import numpy

    own = group.split(0, group.rank)
    assert own is not None
    bare = _messages(own, out, come, int(own.all_reduce(numpy.array([piece]), op="max")[0]))
    told = own.all_gather(numpy.array([float(sum(out)), seconds, bare]))
    busiest = int(told[:, 0].argmax())
    slowest, bound = (float(told[:, column].max()) for column in (1, 2))
    return ShuffleOutcome(busiest, int(told[busiest, 0]), slowest, bound, of_all_ranks(own, paths))


def _messages(group: Group, out: list[int], come: list[int], piece: int) -> float:
    """Two messages to and from each rank are under way, each in memory of its own."""
    import numpy

    memory = numpy.ones((2, 2, group.size, piece), numpy.uint8)
    before: list[Any] = []
    group.barrier()
    start = time.perf_counter()
    for number, begin in enumerate(range(0, max(*out, *come), piece)):
        now: list[Any] = []
        for distance in range(1, group.size):
            to, source = (group.rank + distance) % group.size, (group.rank - distance) % group.size
            gone, wanted = (max(min(piece, left - begin), 0) for left in (out[to], come[source]))
            sent, taken = memory[0, number % 2, to], memory[1, number % 2, source]
            if wanted:
                now.append(group.start_recv(taken[:wanted], source))
            if gone:
                now.append(group.start_send(sent[:gone], to))
        for each in before:
            each.wait()
        before = now
    for each in before:
        each.wait()
    return time.perf_counter() - start
