"""By which ways the pieces of a shuffle have gone between two ranks, and how fast."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from waywiser.units import format_bytes, format_rate, format_seconds

if TYPE_CHECKING:
    from waywiser.group.group import Group


class WayCounts(NamedTuple):
    """Pieces that have gone by one way: `lane`, `copies` or `ucx` within a machine; between machines a path of the
    plan, `ucx` or `encrypted`.
    """

    way: str
    pieces: int
    bytes: int


class PathOutcome(NamedTuple):
    """What has gone from one rank to another. The seconds are those in which at least one piece was under way, as the
    sender has noticed it between its other work.
    """

    source: int
    destination: int
    ways: list[WayCounts]
    seconds: float

    @property
    def bytes(self) -> int:
        return sum(way.bytes for way in self.ways)

    def as_json(self) -> dict[str, Any]:
        """With `bytes`, and the ways as objects."""
        ways = [way._asdict() for way in self.ways]
        return {"source": self.source, "destination": self.destination, "bytes": self.bytes,
                "seconds": self.seconds, "ways": ways}  # fmt: skip


def of_all_ranks(group: Group, mine: list[PathOutcome]) -> list[PathOutcome]:
    """The paths out of all ranks, by rank. All ranks call it."""
    import numpy

    told = numpy.frombuffer(json.dumps(mine).encode(), numpy.uint8)
    counts = group.all_gather(numpy.array([told.size])).ravel()
    everything = group.all_gather(told, counts=counts.tolist()).tobytes()
    begins = numpy.cumsum(counts) - counts
    listed = [json.loads(everything[begin : begin + size]) for begin, size in zip(begins, counts, strict=True)]
    return [
        PathOutcome(source, destination, [WayCounts(*way) for way in ways], seconds)
        for each in listed
        for source, destination, ways, seconds in each
    ]


def by_way(paths: Iterable[PathOutcome]) -> list[str]:
    """A line for each way: all that has gone by it, and the slowest pair that has sent most of its bytes so."""
    lines = []
    sent = [path for path in paths if path.bytes]
    for name in dict.fromkeys(way.way for path in sent for way in path.ways):
        parts = [way for path in sent for way in path.ways if way.way == name]
        pieces, total = sum(way.pieces for way in parts), sum(way.bytes for way in parts)
        line = f"{name}: {format_bytes(total)} in {_of(pieces, 'piece')} between {_of(len(parts), 'pair')}"
        mainly = [path for path in sent if max(path.ways, key=lambda way: way.bytes).way == name and path.seconds > 0]
        if mainly:
            slow = min(mainly, key=lambda path: path.bytes / path.seconds)
            line += (
                f"; slowest {slow.source} to {slow.destination}, {format_bytes(slow.bytes)} in "
                f"{format_seconds(slow.seconds)}: {format_rate(slow.bytes / slow.seconds)}"
            )
        lines.append(line)
    return lines


def _of(count: int, what: str) -> str:
    return f"{count} {what}{'s' * (count > 1)}"
