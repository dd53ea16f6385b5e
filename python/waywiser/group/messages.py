"""Messages between two ranks."""

from __future__ import annotations

from collections.abc import Sequence

from waywiser.errors import InputError, InputTypeError
from waywiser.group.arrays import stream_for
from waywiser.group.future import Future
from waywiser.group.message_status import (
    ANY_SOURCE,
    ANY_TAG,
    MessageStatus,
    TakenMessage,
    Told,
    new_status,
    place_for,
    tell,
)
from waywiser.group.null_rank import PROC_NULL, Nothing
from waywiser.group.prepared import Exchange, Prepared, array_of, part_for_core
from waywiser.group.rank import Rank
from waywiser.group.types import A, Array, Stream

FROM_NOBODY = Told(source=PROC_NULL)


class Messages(Rank):
    """The calls of a group for messages; they arrive in order, `tag` (0 to 32767) distinguishes them.

    With `stream=`, both ends of a message only enqueue it; it has no tag and never matches other messages. If it is the
    group's first call on GPUs, all ranks must make one, and wait for each other. Without `stream=`, a call is complete
    when it returns, and it waits for earlier work in the arrays' current stream.

    A message to or from PROC_NULL does nothing, and an array that it would fill stays as it is.

    To receive, `source` may be ANY_SOURCE and `tag` ANY_TAG, but not with `stream=`: a message goes to the first
    receive, in the order of the calls, that it matches. With `status=` the message may be shorter than `out`, unless it
    comes out of a GPU, and the status says who has sent how much.
    """

    def send(self, data: Array, to: int, tag: int = 0, *, stream: Stream = None) -> None:
        """Sends an array of any shape; returns when the array may be changed again.

        Raises as every call; InputError for a rank that does not exist, and for a tag outside 0 to 32767.
        """
        if to != PROC_NULL:
            self._core.send(data, to, _tag(tag, stream), stream_for(stream, data))

    def recv(
        self, out: A, source: int, tag: int = 0, *, stream: Stream = None, status: MessageStatus | None = None
    ) -> A:
        """Fills `out` with the message from `source`; number and type of the elements must agree. Returns `out`.

        Raises as send.
        """
        if source == PROC_NULL:
            tell(status, FROM_NOBODY)
        else:
            place = None if status is None else place_for(status)
            self._core.recv(out, source, _tag(tag, stream), stream_for(stream, out), place)
        return out

    def probe(self, source: int = ANY_SOURCE, tag: int = ANY_TAG) -> MessageStatus:
        """Waits for the first message that matches and that no receive takes, and says who has sent how much.

        A receive that names this rank and this tag then takes it. Raises as send; UnavailableError for a message out of
        a GPU or by several network cards, whose length only a receive learns.
        """
        if source == PROC_NULL:
            return new_status(FROM_NOBODY)
        core = self._core.probe(source, tag, None)
        assert core is not None
        return new_status(core)

    def iprobe(self, source: int = ANY_SOURCE, tag: int = ANY_TAG, patience: float = 0) -> MessageStatus | None:
        """The same, but waits at most `patience` seconds; None if no message has come. Raises as probe; InputError for
        a patience below 0.
        """
        if source == PROC_NULL:
            return new_status(FROM_NOBODY)
        core = self._core.probe(source, tag, patience)
        return None if core is None else new_status(core)

    def mprobe(
        self, source: int = ANY_SOURCE, tag: int = ANY_TAG, patience: float | None = None
    ) -> TakenMessage | None:
        """Like probe, and takes the message: no receive and no other probe sees it any more. With `patience` it waits
        at most so many seconds; None if no message has come. Raises as iprobe.
        """
        if source == PROC_NULL:
            return TakenMessage(None, new_status(FROM_NOBODY))
        core = self._core.mprobe(source, tag, patience)
        return None if core is None else TakenMessage(core, new_status(core.status))

    def sendrecv(self, data: Array, to: int, out: A, source: int, tag: int = 0, *, stream: Stream = None) -> A:
        """Sends to one rank and receives from another at the same time. Returns `out`. Raises as send."""
        if source == PROC_NULL:
            self.send(data, to, tag, stream=stream)
        elif to == PROC_NULL:
            self.recv(out, source, tag, stream=stream)
        else:
            self._core.sendrecv(data, to, out, source, _tag(tag, stream), stream_for(stream, data, out))
        return out

    def start_send(self, data: Array, to: int, tag: int = 0) -> Future[None]:
        """Begins to send; `data` must not be changed until the future is done. Raises as send."""
        if to == PROC_NULL:
            return Future(Nothing(), None)
        return Future(self._core.start_send(data, to, tag, stream_for(None, data)), None)

    def _start_send_runs(self, data: Array, runs: list[tuple[int, int]], to: int) -> Future[None]:
        """As start_send, of parts of an array as one message; of each: its first element, and how many."""
        return Future(self._core.start_send_runs(data, runs, to, stream_for(None, data)), None)

    def start_recv(self, out: A, source: int, tag: int = 0, *, status: MessageStatus | None = None) -> Future[A]:
        """Begins to receive; the future returns `out`, which must not be used before. Raises as send."""
        if source == PROC_NULL:
            tell(status, FROM_NOBODY)
            return Future(Nothing(), out)
        return Future(self._core.start_recv(out, source, tag, stream_for(None, out), place_for(status)), out)

    def neighbor_exchange(self, neighbors: Sequence[Exchange], *, stream: Stream = None) -> None:
        """Gives to and takes from each neighbour at the same time; fills `take` of each. With `stream`, the arrays of
        all ranks must be on GPUs.

        Raises as send; InputError if an array that is taken overlaps another one.
        """
        listed = [(*each, stream_for(stream, each.give, each.take)) for each in _listed(neighbors)]
        self._core.neighbor_exchange(listed, stream is not None)

    def prepare_exchange(self, neighbors: Sequence[Exchange]) -> Prepared:
        """The same exchange with the same arrays, for repeated starts; all ranks of the group prepare it together.

        Arrays given and taken may be views: a box in a larger array, with non-negative strides, at most three strided
        dimensions and one contiguous dimension; or `Indexed`. Each neighbour pair must give as many elements of one
        type as the other side takes; shapes may differ. Raises as send; InputError if an array that is taken overlaps
        another one, for a view that is not such a box, for indices outside of the array, and if an entry does not match
        what the other ranks take.
        """
        fixed = _listed(neighbors)
        parts = [
            (each.rank, part_for_core(each.give), part_for_core(each.take), each.give_tag, each.take_tag)
            for each in fixed
        ]
        arrays = [(array_of(each.give), array_of(each.take)) for each in fixed]
        return Prepared(self._core.prepare_exchange(parts), arrays)


def _listed(neighbors: Sequence[Exchange]) -> list[Exchange]:
    try:
        return [each for each in (Exchange(*one) for one in neighbors) if each.rank != PROC_NULL]
    except TypeError:
        raise InputTypeError("neighbors is a list of Exchange") from None


def _tag(tag: int, stream: Stream) -> int | None:
    """None for an enqueued message."""
    if stream is None:
        return tag
    if tag != 0:
        raise InputError(f"tag {tag} with stream=: a message on a stream has none")
    return None
