"""Messages between two ranks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from waywiser.group.arrays import Stream, settled
from waywiser.group.future import Future
from waywiser.group.rank import Rank


class Exchange(NamedTuple):
    """What one rank gives to a neighbour and takes from it; see `Group.neighbor_exchange`."""

    rank: int
    give: Any
    take: Any
    give_tag: int = 0
    take_tag: int = 0


class Messages(Rank):
    """The calls of a group for messages; they arrive in order, `tag` (0 to 32767) tells them apart."""

    def send(self, data: Any, to: int, tag: int = 0, *, stream: Stream = None) -> None:
        """Sends an array; returns when it may be changed again."""
        settled(stream, data)
        self._core.send(data, to, tag)

    def recv(self, out: Any, source: int, tag: int = 0, *, stream: Stream = None) -> Any:
        """Fills `out` with what `source` sends; size and type must agree. Returns `out`."""
        settled(stream, out)
        self._core.recv(out, source, tag)
        return out

    def sendrecv(self, data: Any, to: int, out: Any, source: int, tag: int = 0, *, stream: Stream = None) -> Any:
        """Sends to one rank and receives from another at the same time. Returns `out`."""
        settled(stream, data, out)
        self._core.sendrecv(data, to, out, source, tag)
        return out

    def start_send(self, data: Any, to: int, tag: int = 0, *, stream: Stream = None) -> Future:
        """Begins to send; `data` must not be changed until the future is done."""
        settled(stream, data)
        return Future(self._core.start_send(data, to, tag))

    def start_recv(self, out: Any, source: int, tag: int = 0, *, stream: Stream = None) -> Future:
        """Begins to receive; the future gives `out`."""
        settled(stream, out)
        return Future(self._core.start_recv(out, source, tag), out)

    def neighbor_exchange(self, neighbors: Sequence[Exchange], *, stream: Stream = None) -> None:
        """Gives to and takes from each neighbour at the same time."""
        settled(stream, *(array for each in neighbors for array in (each.give, each.take)))
        self._core.neighbor_exchange([tuple(each) for each in neighbors])
