"""Messages between two ranks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from waywiser.errors import InputError
from waywiser.group.arrays import Stream, stream_for
from waywiser.group.future import Future
from waywiser.group.prepared import Prepared, part_for_core
from waywiser.group.rank import Rank


class Exchange(NamedTuple):
    """What one rank gives to a neighbour and takes from it; see `Group.neighbor_exchange`, `Group.prepare_exchange`."""

    rank: int
    give: Any
    take: Any
    give_tag: int = 0
    take_tag: int = 0


class Messages(Rank):
    """The calls of a group for messages; they arrive in order, `tag` (0 to 32767) tells them apart.

    With `stream=` both sides of a message only enqueue it, without a tag and apart from all other messages; a
    collective of GPU arrays must have come before. Without, a call is complete when it returns, and what was enqueued
    in the arrays' current stream comes first.
    """

    def send(self, data: Any, to: int, tag: int = 0, *, stream: Stream = None) -> None:
        """Sends an array; returns when it may be changed again."""
        self._core.send(data, to, _tag(tag, stream), stream_for(stream, data))

    def recv(self, out: Any, source: int, tag: int = 0, *, stream: Stream = None) -> Any:
        """Fills `out` with what `source` sends; size and type must agree. Returns `out`."""
        self._core.recv(out, source, _tag(tag, stream), stream_for(stream, out))
        return out

    def sendrecv(self, data: Any, to: int, out: Any, source: int, tag: int = 0, *, stream: Stream = None) -> Any:
        """Sends to one rank and receives from another at the same time. Returns `out`."""
        self._core.sendrecv(data, to, out, source, _tag(tag, stream), stream_for(stream, data, out))
        return out

    def start_send(self, data: Any, to: int, tag: int = 0) -> Future:
        """Begins to send; `data` must not be changed until the future is done."""
        return Future(self._core.start_send(data, to, tag, stream_for(None, data)))

    def start_recv(self, out: Any, source: int, tag: int = 0) -> Future:
        """Begins to receive; the future gives `out`."""
        return Future(self._core.start_recv(out, source, tag, stream_for(None, out)), out)

    def neighbor_exchange(self, neighbors: Sequence[Exchange], *, stream: Stream = None) -> None:
        """Gives to and takes from each neighbour at the same time. With `stream` all ranks have theirs on GPUs."""
        listed = [(*each, stream_for(stream, each.give, each.take)) for each in neighbors]
        self._core.neighbor_exchange(listed, stream is not None)

    def prepare_exchange(self, neighbors: Sequence[Exchange]) -> Prepared:
        """The same exchange with the same arrays, to be started often; all ranks of the group prepare it together.

        What is given and taken may be a view that is a box in a larger array: of any strides that are not below zero,
        with at most three dimensions whose elements lie apart besides one whose elements lie together; or `Indexed`.
        Of each neighbour as many elements of one type are given as it takes; their shapes may differ. Raises Error:
        what is taken overlaps something else, what is no such box, indices outside of the array, and what does not fit
        to what the other ranks take.
        """
        fixed = [Exchange(*each) for each in neighbors]
        parts = [
            (each.rank, part_for_core(each.give), part_for_core(each.take), each.give_tag, each.take_tag)
            for each in fixed
        ]
        return Prepared(self._core.prepare_exchange(parts), fixed)


def _tag(tag: int, stream: Stream) -> int | None:
    """None for a message that is enqueued."""
    if stream is None:
        return tag
    if tag != 0:
        raise InputError(f"tag {tag} with stream=: a message on a stream has none")
    return None
