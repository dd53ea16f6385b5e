"""Rows to the ranks that own their parts."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from operator import index
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from waywiser.errors import InputError, InputTypeError
from waywiser.table.frames import Frame, arrow, given, names, places
from waywiser.table.outcome import ShuffleOutcome, outcome
from waywiser.table.paths import PathOutcome, WayCounts

if TYPE_CHECKING:
    import pyarrow

    from waywiser.group.group import Group

Rows = TypeVar("Rows")  # as the tables that come out

BUDGET, PIECE = 256 << 20, 1 << 20  # PIECE: without a plan


class Limits(NamedTuple):
    """What a call that makes a shuffle has for it, in the words of `Shuffle`."""

    parts: int | None = None
    budget: int = BUDGET
    piece: int | None = None
    memory: int | None = None
    spill: str | os.PathLike[str] | None = None

    def check_parts(self, ranks: int) -> None:
        """Raises InputError unless each rank has as many parts as the others, which a whole result needs."""
        if self.parts is not None and (number("parts", self.parts, 1) % ranks):
            raise InputError(f"parts={self.parts} is no multiple of {ranks}, the number of ranks")


class PeerCounts(NamedTuple):
    """Between this rank and another one, or itself. The seconds are those in which at least one piece was under way,
    as this rank has noticed it between its other work; `ways` are those of the pieces out.
    """

    rows_out: int
    bytes_out: int
    pieces_out: int
    rows_in: int
    bytes_in: int
    pieces_in: int
    seconds_out: float
    seconds_in: float
    ways: list[WayCounts]


class ShuffleCounts(NamedTuple):
    """What a rank has done in a shuffle: `peers` by rank; the most bytes out and in that were under way at one time;
    the seconds that it waited for others; the bytes that have gone to files.
    """

    peers: list[PeerCounts]
    most_under_way: int
    waited: float
    spilled: int


class ShuffleCalls(Generic[Rows]):
    """What shuffles have in common, whatever their tables are."""

    schema: pyarrow.Schema

    def _start(
        self, group: Group, make: Callable[[], Any], purpose: str, limits: Limits, gpu: int | None = None
    ) -> None:
        from waywiser import _core

        parts, budget, piece, memory, spill = limits
        schema, failed, count, sizes, kept, folder = None, "", 0, (BUDGET, 0), 0, ""
        place: int | None = None
        try:
            count = 0 if parts is None else number("parts", parts, 1)
            sizes = (
                number("budget", budget, 1, 1 << 60),
                0 if piece is None else number("piece", piece, 1, 1 << 60),
            )
            kept = 0 if memory is None else number("memory", memory, 1, 1 << 60)
            folder = "" if spill is None else os.fspath(spill)
            place = None if gpu is None else number("gpu", gpu)
            schema = make().remove_metadata()
        except Exception as error:  # the core raises it at all ranks
            failed = str(error) or type(error).__name__
        capsule = None if schema is None else schema.__arrow_c_schema__()
        self._core = _core.Shuffle(group._core, capsule, count, *sizes, purpose, failed, kept, folder, place)
        assert schema is not None
        self.schema = schema
        self.parts: int = self._core.parts()
        self._group, self._piece = group, self._core.piece()
        self._began, self._seconds = time.perf_counter(), 0.0

    def complete(self, part: int) -> None:
        """This rank inserts no more into the part. Raises as insert."""
        self._core.complete(number("part", part))

    def finish(self) -> None:
        """This rank inserts no more into any part. Raises as insert."""
        self._core.finish()

    def take_all(self) -> None:
        """Finishes, then waits until all that comes to this rank has come, and all that it has sent is taken:
        `extract` waits for nobody then, and the group is free for other calls. Raises as insert.
        """
        self.finish()
        self._core.take_all()

    def extract(self, part: int) -> Rows:
        """The rows of a part of this rank. Raises as the class says."""
        raise NotImplementedError

    def __iter__(self) -> Iterator[tuple[int, Rows]]:
        """Finishes, then gives this rank's parts as they are completed: the number, the rows. Its end waits until all
        that this rank has sent is taken.
        """
        self.finish()
        while (part := self._core.next()) is not None:
            yield part, self.extract(part)
        if not self._seconds:
            self._seconds = time.perf_counter() - self._began

    def counts(self) -> ShuffleCounts:
        """What this rank has done so far. Raises nothing."""
        counts = self._core.counts()
        peers = []
        for *numbers, ways in counts["peers"]:
            peers.append(PeerCounts._make([*numbers, [WayCounts(*way) for way in ways]]))
        return ShuffleCounts(peers, counts["most_under_way"], counts["waited"], counts["spilled"])

    def explain(self, size: int | None = None) -> dict[int, str]:
        """The way of a piece of `size` bytes to each other rank, as `WayCounts` names it; without `size` of one as long
        as pieces are at most. By the plan that the group has, or the defaults without one. Raises InputError.
        """
        size = self._piece if size is None else number("size", size, 1, 1 << 40)
        return {to: self._core.way_to(to, size) for to in range(self._group.size) if to != self._group.rank}

    def outcome(self) -> ShuffleOutcome:
        """What all ranks have reached, from when the shuffle was made to the end of the loop over the parts, beside
        bare messages of the same bytes, which this call sends. All ranks call it after the loop.

        What the program does in the loop counts. Raises InputError before the end of the loop; else as the class says.
        """
        if not self._seconds:
            raise InputError("outcome comes after the loop over the parts")
        peers = self.counts().peers
        rank = self._group.rank
        out = [0 if to == rank else peer.bytes_out for to, peer in enumerate(peers)]
        come = [0 if source == rank else peer.bytes_in for source, peer in enumerate(peers)]
        paths = [PathOutcome(rank, to, peer.ways, peer.seconds_out) for to, peer in enumerate(peers) if peer.ways]
        return outcome(self._group, out, come, self._seconds, self._piece, paths)


class Shuffle(ShuffleCalls["pyarrow.Table"]):
    """Sends rows of tables to the ranks that own their parts: part `p` belongs to rank `p % group.size`.

    All ranks make it together, with the same `schema`: that of pyarrow, or a table that has it. `parts`: as many as
    ranks if left out. Each rank inserts what it has, as it comes, and takes its parts as all ranks complete them;
    there is no barrier. `budget`: bytes of pieces under way at this rank, out and in; `insert` waits for room, and
    takes what comes meanwhile. What has come and is not extracted is the result, and not in the budget. `piece`: the
    most bytes of rows that go in one message (one row may have more), by default those from which on messages reach
    nine tenths of their best rate in the plan, and 1 MiB without a plan; a budget is at least four pieces. `memory`:
    the bytes of what has come and is not extracted that this rank keeps in memory; above it, what has come of its
    largest part goes to a file in the folder `spill`, until it is extracted. Both are given, or none.

    Raises, at all ranks and before any row moves: InputError for schemas that differ, two columns of one name, or
    options that make no sense; UnavailableError for a type that is not served. Later calls raise as every call of a
    group, and CorruptionError at all ranks if the rows of a part, or their hash, are not those that were sent. A
    shuffle that is dropped before it is over ends the group. A rank that waits elsewhere takes no pieces: between the
    first `insert` and the end of the loop over the parts, make no collective and insert into no other shuffle.
    """

    def __init__(
        self,
        group: Group,
        schema: pyarrow.Schema | Frame,
        *,
        parts: int | None = None,
        budget: int = BUDGET,
        piece: int | None = None,
        memory: int | None = None,
        spill: str | os.PathLike[str] | None = None,
    ) -> None:
        pa = arrow()

        def make() -> pyarrow.Schema:
            return schema if isinstance(schema, pa.Schema) else given(schema, "schema").table.schema

        self._start(group, make, "a shuffle", Limits(parts, budget, piece, memory, spill))

    @classmethod
    def _of(cls, group: Group, make: Callable[[], pyarrow.Schema], purpose: str, limits: Limits) -> Shuffle:
        made = cls.__new__(cls)
        made._start(group, make, purpose, limits)
        return made

    def insert(self, data: Frame, *, on: str | Sequence[str] | None = None, part: int | None = None) -> None:
        """All rows into one part, or each by the hash of its columns `on`: rows with equal keys have one part, at any
        rank. Nulls are alike, as are all NaN, both zeros, and a value and its dictionary's.

        `data` may change when it returns. Raises InputError for another schema and for a part that is completed;
        UnavailableError for keys that are lists or structs; else as the class says.
        """
        table = given(data).table
        if (on is None) == (part is None):
            raise InputError("insert takes on= or part=")
        if not table.schema.equals(self.schema):
            raise InputError(f"insert: the table has {_unlike(table.schema, self.schema)}")
        keys = None if on is None else places(table, names(on, "on"), "on")
        for batch in table.to_batches():
            array = batch.__arrow_c_array__()[1]
            if keys is not None:
                self._core.insert_by_hash(array, keys)
            else:
                self._core.insert(array, number("part", part))

    def extract(self, part: int) -> pyarrow.Table:
        """The rows of a part of this rank, by the rank that gave them, then in the order of its inserts. Waits until
        all ranks have completed it.

        The table owns its memory. Raises InputError for a part of another rank, one that is extracted already, or that
        this rank has not completed; else as the class says.
        """
        pa = arrow()
        batches = [
            pa.RecordBatch._import_from_c_capsule(self.schema.__arrow_c_schema__(), array)
            for array in self._core.extract(number("part", part))
        ]
        return pa.Table.from_batches(batches, self.schema)


def number(name: str, value: Any, least: int = 0, end: int = 1 << 31) -> int:
    try:
        number = index(value)
    except TypeError:
        raise InputTypeError(f"{name}= is a whole number, not {type(value).__name__}") from None
    if not least <= number < end:
        raise InputError(f"{name}={number} is out of range")
    return number


def _unlike(mine: Any, wanted: Any) -> str:
    for one, other in zip(mine, wanted, strict=False):
        if one.name != other.name or one.type != other.type:
            return f"{one.name}: {one.type} in place of {other.name}: {other.type}"
    return f"{len(mine)} columns, not {len(wanted)}"


def whole(tables: Sequence[Any]) -> Any:
    """The rows of one table or more, in their order."""
    return tables[0] if len(tables) == 1 else arrow().concat_tables(tables).unify_dictionaries()
