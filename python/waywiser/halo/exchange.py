"""One exchange object for the fields of a solver."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple, cast

from waywiser.errors import InputError, InputTypeError
from waywiser.group.arrays import stream_for
from waywiser.group.types import Array, Stream
from waywiser.halo.fields import HaloField, array_of, described
from waywiser.halo.partition import Partition

if TYPE_CHECKING:
    from waywiser.group.group import Group

HaloVariant = Literal["whole_field", "per_neighbor", "packed", "direct", "strided", "gpu_aware"]
MIXED = "mixed"  # sides have variants of their own


class HaloSide(NamedTuple):
    """Cells that this rank gives to a neighbour, in a halo exchange: of a mesh all, of a grid those of one face.

    `neighbor`: its rank. `face`: where it lies in a grid, -1, 0 or 1 in each dimension; empty for a mesh. `cells`: how
    many. `variant`: by which they travel.
    """

    neighbor: int
    face: tuple[int, ...]
    cells: int
    variant: HaloVariant


class HaloExchange:
    """Fills the ghost cells of any number of fields with the values of the ranks that own them, again and again.

    All ranks make it together, with the same fields in the same order, and start it equally often. `fields`: arrays of
    any library, types mixed, contiguous, at each rank all in host memory or all on one GPU. The shape of each is
    `partition.local_shape`; a vector field has its components as one more dimension, the last one, or the first one of
    an array in `ComponentsFirst`.

    Between `start()` and `finish()` the fields must not be written and their ghosts must not be read. Several exchanges
    may be under way at once if their fields differ. It keeps its group and its arrays.

    Raises as every call of a group; InputError at all ranks for fields or partitions that do not match those of the
    other ranks, for an array of another shape, and for arrays that overlap.
    """

    def __init__(self, group: Group, partition: Partition, fields: Iterable[HaloField]) -> None:
        from waywiser import _core

        if not isinstance(partition, Partition):
            raise InputTypeError(f"partition is a GridPartition or a MeshPartition, not {type(partition).__name__}")
        self._group = group
        self._partition = partition
        self._fields = list(fields)
        self._core = _core.HaloExchange(group._core, partition._core, *self._described(self._fields))

    def _described(self, fields: list[HaloField]) -> tuple[list[tuple[Array, int, bool]], str]:
        """What the core expects, or why this rank has it not."""
        try:
            return [described(each, self._partition.local_shape) for each in fields], ""
        except InputError as error:
            return [], str(error)

    def start(self, *, stream: Stream = None) -> None:
        """Begins an exchange. With `stream` it comes after earlier work there; a direct variant is only enqueued and
        can be captured in a graph, all others wait for the stream.

        Raises as every call of a group; InputError for `stream` with host arrays, and before the last exchange has
        been finished; UnavailableError in a stream that is being captured, if the variant is not a direct one.
        """
        if stream is not None:
            self._core.start(stream_for(stream), [])
            return
        streams = {stream_for(None, array_of(each)) for each in self._fields}
        self._core.start(None, list(streams - {None}))

    def finish(self) -> None:
        """Completes the exchange begun by `start()`. Raises as every call of a group."""
        self._core.finish()

    def exchange(self, *, stream: Stream = None) -> None:
        """Starts an exchange and finishes it. Raises as start."""
        self.start(stream=stream)
        self.finish()

    __call__ = exchange

    @property
    def fields(self) -> list[HaloField]:
        """The arrays that are exchanged, in order. Raises nothing."""
        return list(self._fields)

    def add(self, *fields: HaloField) -> None:
        """Adds arrays; all ranks call it. If `tune()` has chosen the variant, it is called again, also by `remove()`.

        Raises InputError at all ranks as the class does, and between start and finish; the fields are then as before.
        """
        self._set([*self._fields, *fields])

    def remove(self, *fields: HaloField) -> None:
        """Removes arrays; all ranks call it.

        Raises InputError for an array that is not exchanged, and between start and finish.
        """
        left = list(self._fields)
        for each in fields:
            found = next((i for i, field in enumerate(left) if array_of(field) is array_of(each)), None)
            if found is None:
                raise InputError("remove: an array that is not exchanged")
            del left[found]
        self._set(left)

    def _set(self, fields: list[HaloField]) -> None:
        self._core.set_fields(*self._described(fields))
        self._fields = fields

    @property
    def variant(self) -> HaloVariant | Literal["mixed"]:
        """The variant that is used; "mixed" if those of `sides` differ. Raises nothing."""
        return cast(HaloVariant, self._core.variant)

    @property
    def sides(self) -> list[HaloSide]:
        """What this rank gives, and by which variants: of a mesh in the order of its neighbours. Raises nothing."""
        return [HaloSide(*each) for each in self._core.sides()]

    def use(self, variant: HaloVariant | Sequence[HaloVariant] | Mapping[int, HaloVariant]) -> None:
        """Uses a variant from now on; all ranks call it. Besides one for all: a list with one for each of `sides`, or
        the variants of some neighbours by rank, while the others keep theirs. Ranks may differ then: the rank that
        gives the cells decides. Only "per_neighbor", "packed" and "direct" can be mixed.

        Raises UnavailableError at all ranks, with the reason; InputError at all ranks for a name that is not that of
        the other ranks, or none, for a list of another length, for another variant than these in a mix, and for a rank
        that is given no cells.
        """
        if isinstance(variant, str) or not isinstance(variant, (Mapping, Sequence)):
            self._core.use(variant)
        elif isinstance(variant, Mapping):
            strangers = set(variant) - {each.neighbor for each in self.sides}
            failed = f"use: rank {min(strangers)} is no neighbour that is given cells" if strangers else ""
            self._core.use_sides([variant.get(each.neighbor, each.variant) for each in self.sides], failed)
        else:
            self._core.use_sides(list(variant), "")

    def tune(
        self, seconds: float, *, file: str | os.PathLike[str] | None = None
    ) -> dict[HaloVariant | Literal["mixed"], float | None]:
        """Measures all variants in turn for `seconds`, and at least once, where time is left also mixes; then uses what
        is the fastest at its slowest rank; all ranks call it. It exchanges the fields, as `exchange()` does.
        `explain()` tells the rest.

        `file`: a plan, or a folder of results, whose plan.json is meant. If it has a row for this shape
        (partition, fields and their places, types of machine, of all ranks), that is used without measuring, and
        nothing is exchanged; else the answer is measured and added. All ranks give a file, or none does.

        Returns the median time of an exchange by each variant in seconds, None for those that are unavailable; "mixed"
        is among them if a mix was measured. Raises as every call of a group; InputError for a time that is not above 0,
        or not equal at all ranks; at all ranks InputError for a file that cannot be read, and TransferError for one
        that cannot be written.
        """
        times = self._core.tune(seconds, "" if file is None else os.fspath(file))
        return {cast(HaloVariant, name): None if math.isnan(time) else time for name, time in times}

    def explain(self) -> str:
        """The variant, its cost, the runner-up and the reason, the variants of all sides if they differ, and the share
        of time in the exchange, in a few lines. Raises nothing.
        """
        return str(self._core.explain())

    def counts(self, variant: HaloVariant | Literal["mixed"] | None = None) -> dict[str, int]:
        """What exchanges by a variant, or by all, have done at this rank so far, those of `tune()` included:
        `exchanges`; `messages` and `message_bytes` sent to other ranks; `bus_copies` and `bus_bytes` between a GPU and
        host memory, both ways. Raises InputError for an unknown name.
        """
        return dict(self._core.counts_of_all() if variant is None else self._core.counts(variant))

    def times(self) -> dict[str, float]:
        """Seconds of this rank since the variant is in use, from the beginning of the first `start()` to the end of the
        last `finish()`: `inside` these two, `overlapped` between them, `elapsed` in all. What a stream does later is
        not seen. Raises nothing.
        """
        return dict(zip(("inside", "overlapped", "elapsed"), self._core.times(), strict=True))
