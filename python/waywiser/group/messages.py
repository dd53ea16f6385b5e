"""Messages between two ranks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from waywiser.errors import InputError, InputTypeError
from waywiser.group.arrays import stream_for
from waywiser.group.future import Future
from waywiser.group.prepared import Indexed, Prepared, part_for_core
from waywiser.group.rank import Rank
from waywiser.group.types import A, Array, Stream


class Exchange(NamedTuple):
    """What one rank gives to a neighbour and takes from it; see `Group.neighbor_exchange`, `Group.prepare_exchange`.

    `rank`: the neighbour. What this rank gives with `give_tag` is what the neighbour takes with the same `take_tag`.
    """

    rank: int
    give: Array | Indexed
    take: Array | Indexed
    give_tag: int = 0
    take_tag: int = 0


class Messages(Rank):
    """The calls of a group for messages; they arrive in order, `tag` (0 to 32767) tells them apart.

    With `stream=` both sides of a message only enqueue it, without a tag and apart from all other messages; a
    collective of GPU arrays must have come before. Without, a call is complete when it returns, and what was enqueued
    in the arrays' current stream comes first.
    """

    def send(self, data: Array, to: int, tag: int = 0, *, stream: Stream = None) -> None:
        """Sends an array of any shape; returns when it may be changed again.

        Raises as every call; InputError for a rank that is not there, and a tag that is not 0 to 32767.
        """
        self._core.send(data, to, _tag(tag, stream), stream_for(stream, data))

    def recv(self, out: A, source: int, tag: int = 0, *, stream: Stream = None) -> A:
        """Fills `out` with what `source` sends; number and type of the elements must agree. Returns `out`.

        Raises as send.
        """
        self._core.recv(out, source, _tag(tag, stream), stream_for(stream, out))
        return out

    def sendrecv(self, data: Array, to: int, out: A, source: int, tag: int = 0, *, stream: Stream = None) -> A:
        """Sends to one rank and receives from another at the same time. Returns `out`. Raises as send."""
        self._core.sendrecv(data, to, out, source, _tag(tag, stream), stream_for(stream, data, out))
        return out

    def start_send(self, data: Array, to: int, tag: int = 0) -> Future[None]:
        """Begins to send; `data` must not be changed until the future is done. Raises as send."""
        return Future(self._core.start_send(data, to, tag, stream_for(None, data)), None)

    def start_recv(self, out: A, source: int, tag: int = 0) -> Future[A]:
        """Begins to receive; the future gives `out`, which nobody may use before. Raises as send."""
        return Future(self._core.start_recv(out, source, tag, stream_for(None, out)), out)

    def neighbor_exchange(self, neighbors: Sequence[Exchange], *, stream: Stream = None) -> None:
        """Gives to and takes from each neighbour at the same time; fills `take` of each. With `stream` all ranks have
        theirs on GPUs.

        Raises as send; InputError when what is taken overlaps something else.
        """
        listed = [(*each, stream_for(stream, each.give, each.take)) for each in _listed(neighbors)]
        self._core.neighbor_exchange(listed, stream is not None)

    def prepare_exchange(self, neighbors: Sequence[Exchange]) -> Prepared:
        """The same exchange with the same arrays, to be started often; all ranks of the group prepare it together.

        What is given and taken may be a view that is a box in a larger array: of any strides that are not below zero,
        with at most three dimensions whose elements lie apart besides one whose elements lie together; or `Indexed`.
        Of each neighbour as many elements of one type are given as it takes; their shapes may differ. Raises as send;
        InputError: what is taken overlaps something else, what is no such box, indices outside of the array, and what
        does not fit to what the other ranks take.
        """
        fixed = _listed(neighbors)
        parts = [
            (each.rank, part_for_core(each.give), part_for_core(each.take), each.give_tag, each.take_tag)
            for each in fixed
        ]
        return Prepared(self._core.prepare_exchange(parts), fixed)


def _listed(neighbors: Sequence[Exchange]) -> list[Exchange]:
    try:
        return [Exchange(*each) for each in neighbors]
    except TypeError:
        raise InputTypeError("neighbors is a list of Exchange") from None


def _tag(tag: int, stream: Stream) -> int | None:
    """None for a message that is enqueued."""
    if stream is None:
        return tag
    if tag != 0:
        raise InputError(f"tag {tag} with stream=: a message on a stream has none")
    return None
