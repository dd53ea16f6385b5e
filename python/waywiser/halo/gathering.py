"""A field of all ranks as one array."""

from __future__ import annotations

import math
import zlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from waywiser.errors import InputError
from waywiser.group.arrays import library_of
from waywiser.group.rank import known_to_all
from waywiser.halo.fields import HaloField, array_of, described

if TYPE_CHECKING:
    import numpy

    from waywiser.group.group import Group

Box = tuple[list[int], list[int]]  # the first cell and the number of cells, by dimension
_FITS, _TYPE, _COMPONENTS, _FIRST = range(4)  # what the ranks must agree on


def gathered(
    group: Group, boxes: Sequence[Box], ghost: Sequence[int], field: HaloField, root: int
) -> numpy.ndarray[Any, Any] | None:
    """GridPartition.gather; `boxes`: the cells that each rank owns."""
    import numpy

    facts, values, refused = numpy.zeros(4, numpy.int64), numpy.empty(0), None
    try:
        values, facts[_COMPONENTS], facts[_FIRST] = _owned(boxes[group.rank][1], ghost, field)
        facts[_FITS], facts[_TYPE] = 1, zlib.crc32(values.dtype.name.encode())
    except (InputError, TypeError, ValueError) as error:
        refused = str(error)
    every_fact = group.all_gather(facts)
    with known_to_all(group.barrier):
        _check(every_fact, refused, group.rank)
    first, dimensions = bool(facts[_FIRST]), len(ghost)
    more = values.shape[:-dimensions] if first else values.shape[dimensions:]
    sizes = [math.prod(count) * math.prod(more) * values.itemsize for _, count in boxes]
    mine = numpy.ascontiguousarray(values).reshape(-1).view(numpy.uint8)
    every = group.gather(mine, root=root, counts=sizes)
    if every is None:
        return None
    shape = [max(begin[i] + count[i] for begin, count in boxes) for i in range(dimensions)]
    whole = numpy.empty((*more, *shape) if first else (*shape, *more), values.dtype)
    before = (slice(None),) * len(more) if first else ()
    at = 0
    for (begin, count), size in zip(boxes, sizes, strict=True):
        box = tuple(slice(b, b + c) for b, c in zip(begin, count, strict=True))
        block = every[at : at + size].view(values.dtype)
        whole[before + box] = block.reshape((*more, *count) if first else (*count, *more))
        at += size
    return whole


def _owned(count: Sequence[int], ghost: Sequence[int], field: HaloField) -> tuple[numpy.ndarray[Any, Any], int, bool]:
    """The cells that this rank owns, the number of components (0: a field without), and whether they come first."""
    import numpy

    array, local = array_of(field), tuple(own + 2 * width for own, width in zip(count, ghost, strict=True))
    if not hasattr(array, "shape"):
        array = numpy.asarray(array).reshape(local)
    _, components, first = described(field, local)
    scalar = not first and len(array.shape) == len(local)
    index = tuple(slice(width, width + own) for own, width in zip(count, ghost, strict=True))
    values = library_of(array).on_host(array, (slice(None), *index) if first else index)
    return values, 0 if scalar else components, first


def _check(facts: numpy.ndarray[Any, Any], refused: str | None, rank: int) -> None:
    """Raises the same kind of error at all ranks if one cannot give its part, or ranks differ."""
    if refused is not None:
        raise InputError(f"rank {rank}: gather: {refused}")
    for other, its in enumerate(facts):
        if not its[_FITS]:
            raise InputError(f"rank {other}: gather: its array does not fit the grid")
        for what, name in ((_TYPE, "type"), (_COMPONENTS, "number of components"), (_FIRST, "place of components")):
            if its[what] != facts[0][what]:
                raise InputError(f"rank {other}: gather: another {name} than that of rank 0")
