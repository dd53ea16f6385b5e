"""Functions of a server on arrays of the program, piece by piece."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from waywiser.errors import InputError

if TYPE_CHECKING:
    import numpy
    import numpy.typing

    from waywiser._core import RemoteGpu as CoreGpu
    from waywiser.offload.arrays import RemoteArray
    from waywiser.offload.streams import RemoteStream


class PiecesOwner(Protocol):
    """What RemoteGpu gives to arrays that go through it piece by piece."""

    def stream(self) -> RemoteStream: ...

    def array(self, values: numpy.typing.ArrayLike) -> RemoteArray: ...

    def zeros(self, shape: int | tuple[int, ...], dtype: Any = float) -> RemoteArray: ...

    def pinned_by(self, values: numpy.ndarray[Any, Any]) -> str: ...

    def _begin(self, stream: int = 0) -> CoreGpu: ...


def run_in_pieces(
    gpu: PiecesOwner,
    function: str,
    values: tuple[numpy.typing.ArrayLike, ...],
    out: numpy.ndarray[Any, Any] | None,
    piece: int,
    numbers: dict[str, float],
) -> numpy.ndarray[Any, Any]:
    """As RemoteGpu.run_in_pieces. Raises as it."""
    import numpy

    given = [numpy.asarray(each, order="C") for each in values]
    if not given or any(each.shape != given[0].shape for each in given):
        raise InputError("run_in_pieces takes one or more arrays of one shape")
    if piece < 1:
        raise InputError(f"piece={piece!r:.60}: write a number of bytes, from 1")
    if out is not None and (out.shape != given[0].shape or not out.flags.c_contiguous or not out.flags.writeable):
        raise InputError(f"out is a contiguous array of the shape {given[0].shape} that can be written to")
    flat = [each.reshape(-1) for each in given]
    step = max(1, piece // max(each.itemsize for each in flat))
    room = None if out is None else out.reshape(-1)
    streams = gpu.stream(), gpu.stream()
    kept: tuple[list[RemoteArray], list[RemoteArray]] = [], []
    last: tuple[RemoteStream, RemoteArray, slice] | None = None
    for turn, begin in enumerate(range(0, max(flat[0].size, 1), step)):
        part = slice(begin, min(begin + step, flat[0].size))
        stream = streams[turn % 2]
        made = stream.run(function, *_put(gpu, stream, kept[turn % 2], [each[part] for each in flat], step), **numbers)
        if last is not None:  # while this piece is computed, the one before comes back
            room = _take(*last, room, flat[0].size)
        last = stream, made, part
    assert last is not None
    room = _take(*last, room, flat[0].size)
    return room.reshape(given[0].shape) if out is None else out


def _put(
    gpu: PiecesOwner,
    stream: RemoteStream,
    kept: list[RemoteArray],
    values: list[numpy.ndarray[Any, Any]],
    step: int,
) -> list[RemoteArray]:
    """The pieces, on the GPU. From memory that the server has mapped the stream copies them, into `kept`, the arrays of
    its last piece, while the other stream's result comes back: freeing memory would wait for all that is under way.
    """
    if values[0].size != step or any(gpu.pinned_by(each) != "server" for each in values):
        return [gpu.array(each) for each in values]
    if not kept:
        kept.extend(gpu.zeros(each.shape, each.dtype) for each in values)
    with gpu._begin(stream._number) as core:
        for array, each in zip(kept, values, strict=True):
            if not core.begin_put(array._number, 0, each):
                core.put(array._number, 0, each)
    return kept


def _take(
    stream: RemoteStream, made: RemoteArray, part: slice, room: numpy.ndarray[Any, Any] | None, count: int
) -> numpy.ndarray[Any, Any]:
    """The result's piece, in its place of `room`, which the first piece makes if there is none."""
    import numpy

    if room is not None:
        stream.get(made, out=room[part])
        return room
    values = stream.get(made)
    if values.shape != (part.stop - part.start,):
        raise InputError(f"{part.stop - part.start} elements have become an array of the shape {values.shape}")
    room = numpy.empty(count, values.dtype)
    room[part] = values
    return room
