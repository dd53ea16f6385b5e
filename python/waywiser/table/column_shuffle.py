"""Shuffles and joins of tables that are dicts of arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from operator import index
from typing import TYPE_CHECKING, Any, NamedTuple

from waywiser.errors import InputError, InputTypeError
from waywiser.table.column_rounds import PIECE, Sorted, by_keys, by_runs, rounds
from waywiser.table.columns import Columns, Library, are_columns, keys_of, library_of, named_types, part_of_rows
from waywiser.table.frames import names

if TYPE_CHECKING:
    from waywiser.group.group import Group


class Table(NamedTuple):
    """Columns, and the library of their arrays."""

    columns: Columns
    library: Library
    keys: list[Any]


def table_of(data: Any, on: str | Sequence[str], name: str = "data", what: str = "on") -> Table:
    """Raises InputError, InputTypeError."""
    if not are_columns(data):
        raise InputTypeError(f"{name} is no dict of arrays, unlike the other table")
    library = library_of(data, name)
    return Table(data, library, keys_of(library, data, names(on, what), what))


def agreed(group: Group, purpose: str, make: Callable[[], list[tuple[str, str]]]) -> Group:
    """A group of the same ranks whose messages meet no others, if all ranks have the same purpose and columns. Raises
    the same at all ranks.
    """
    from waywiser import _core

    columns: list[tuple[str, str]] = []
    failed = ""
    try:
        columns = make()
    except Exception as error:  # the core raises it at all ranks
        failed = str(error) or type(error).__name__
    _core.agree_on_columns(group._core, columns, purpose, failed)
    own = group.split(0, group.rank)
    assert own is not None
    return own


def partitioned(data: Columns, on: str | Sequence[str], parts: int) -> list[Columns]:
    """As `partition`."""
    table = table_of(data, on)
    order, counts = table.library.by_part(part_of_rows(table.library, table.keys, parts), parts)
    found: list[Columns] = []
    begin = 0
    for count in counts:
        rows = order[begin : begin + count]
        found.append({name: table.library.take(array, rows) for name, array in data.items()})
        begin += count
    return found


def shuffled(group: Group, data: Columns, on: str | Sequence[str], purpose: str) -> Columns:
    """As `shuffle`."""
    tables: list[Table] = []

    def make() -> list[tuple[str, str]]:
        tables.append(table_of(data, on))
        return named_types(tables[0].library, data)

    own = agreed(group, purpose, make)
    table = tables[0]
    ((_, mine),) = rounds(own, by_keys(table.library, data, table.keys, own.size), own.size)
    return mine


class ColumnShuffle:
    """Sends rows of tables that are dicts of arrays to the ranks that own their parts: part `p` belongs to rank
    `p % group.size`. The arrays are NumPy's in host memory, or PyTorch's in host memory or on a GPU.

    All ranks make it together, with tables `like` of the same columns; `parts`: as many as ranks if left out. `insert`
    is a call of all ranks: rows go straight into the arrays of the result, in messages of at most `piece` bytes, by the
    ways that the group has for them. `memory`: the bytes of what has come that stay on this rank's GPU; above it a part
    goes to page-locked host memory until it is extracted.

    Raises at all ranks, before any row moves: InputError for columns that differ, for arrays of other libraries and for
    options that make no sense. Later calls raise as every call of a group.
    """

    def __init__(
        self, group: Group, like: Columns, *, parts: int | None = None, memory: int | None = None, piece: int = PIECE
    ) -> None:
        libraries: list[Library] = []
        limits: list[int] = []

        def make() -> list[tuple[str, str]]:
            if not are_columns(like):
                raise InputTypeError(f"like= is a dict of arrays, not {type(like).__name__}")
            libraries.append(library_of(like, "like"))
            limits.extend(index(each) for each in (group.size if parts is None else parts, memory or 0, piece))
            if limits[0] < 1 or limits[1] < 0 or limits[2] < 1 or (memory is not None and limits[1] == 0):
                raise InputError(f"parts={parts}, memory={memory}, piece={piece}: each is at least 1")
            if memory and not libraries[0].is_on_gpu:
                raise InputError("memory= is for tables on GPUs")
            return named_types(libraries[0], like)

        self._group = agreed(group, f"a shuffle of arrays into {parts} parts", make)
        self._library, self._like = libraries[0], {name: array[:0] for name, array in like.items()}
        self.parts, self._memory, self._piece = limits
        self._come: dict[int, list[dict[str, Any]]] = {}
        self._held: dict[int, int] = {}
        self.spilled = 0

    def insert(
        self,
        data: Columns,
        *,
        on: str | Sequence[str] | None = None,
        rows: Sequence[int] | None = None,
        to: Sequence[int] | None = None,
    ) -> None:
        """Each row by the hash of its columns `on`; or in runs, one behind the other, of which run i has `rows[i]` rows
        and belongs to part `to[i]`. All ranks call it, and those with no rows give an empty table.

        Rows with equal keys have one part, at any rank, the same as tables of pyarrow. Keys are integers. Raises at all
        ranks, before any row moves: InputError for other columns, keys that are not there or no integers, runs that do
        not add up.
        """
        ordered: list[Sorted] = []

        def make() -> list[tuple[str, str]]:
            library = library_of(data)
            wanted = named_types(self._library, self._like)
            if named_types(library, data) != wanted:
                raise InputError(f"insert: the table has columns {named_types(library, data)}, not {wanted}")
            if on is not None and rows is None and to is None:
                ordered.append(by_keys(library, data, keys_of(library, data, names(on, "on")), self.parts))
            elif on is None and rows is not None and to is not None:
                ordered.append(by_runs(library, data, rows, to, self.parts))
            else:
                raise InputError("insert takes on=, or rows= and to=")
            return wanted

        self._agree(make)
        for part, columns in rounds(self._group, ordered[0], self.parts, self._piece, together=self._memory == 0):
            self._come.setdefault(part, []).append(columns)
            if self._memory:
                self._hold(part, columns)

    def _agree(self, make: Callable[[], list[tuple[str, str]]]) -> None:
        from waywiser import _core

        failed = ""
        try:
            make()
        except Exception as error:  # the core raises it at all ranks
            failed = str(error) or type(error).__name__
        _core.agree_on_columns(self._group._core, [], "an insert into a shuffle of arrays", failed)

    def _hold(self, part: int, columns: dict[str, Any]) -> None:
        self._held[part] = self._held.get(part, 0) + sum(array.nbytes for array in columns.values())
        while sum(self._held.values()) > self._memory:
            most = max(self._held, key=lambda each: self._held[each])
            for each in self._come[most]:
                each.update({name: self._library.to_host(array) for name, array in each.items()})
            self.spilled += self._held.pop(most)

    def __iter__(self) -> Iterator[tuple[int, Columns]]:
        """This rank's parts: the number, and its rows, by insert, then by the rank that gave them, then in its order.
        What is given is the program's: the shuffle keeps no part of it. Calls no other rank.
        """
        for part in range(self._group.rank, self.parts, self._group.size):
            come = self._come.pop(part, [])
            self._held.pop(part, None)
            here = [{name: self._library.from_host(array) for name, array in each.items()} for each in come]
            yield part, self._library.joined(here) if here else self._like
