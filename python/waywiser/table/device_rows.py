"""Rows in the memory of a GPU, by Arrow's C device interface: from any library that has it, and to any."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from waywiser.errors import InputError, InputTypeError
from waywiser.table.frames import arrow
from waywiser.table.shuffle import BUDGET, Limits, ShuffleCalls, number

if TYPE_CHECKING:
    import pyarrow

    from waywiser import _core
    from waywiser.group.group import Group


class DeviceRows:
    """Rows that have come to this rank's GPU, in batches; `rows` is their number, `schema` that of pyarrow.

    A library takes them by `__arrow_c_device_stream__`, or, where they are one batch, by `__arrow_c_device_array__`;
    both give them away, so that each is for one call. They own their memory.
    """

    def __init__(self, core: _core.DeviceRows, schema: pyarrow.Schema) -> None:
        self._core, self.schema = core, schema
        self.rows: int = sum(core.rows())

    def __len__(self) -> int:
        return self.rows

    def __arrow_c_device_stream__(self, requested_schema: object = None, **_: object) -> object:
        """A capsule `arrow_device_array_stream`. Raises nothing."""
        return self._core.stream(self.schema)

    def __arrow_c_device_array__(self, requested_schema: object = None, **_: object) -> tuple[object, object]:
        """Capsules `arrow_schema` and `arrow_device_array`. Raises InputError where there is not one batch, or none is
        left.
        """
        if (count := len(self._core.rows())) != 1:
            raise InputError(f"these rows are in {count} batches: take __arrow_c_device_stream__")
        return self.schema.__arrow_c_schema__(), self._core.array(0)


def _schema_of(table: Any) -> pyarrow.Schema:
    """Of what is on a GPU, or pyarrow's own. Raises InputTypeError."""
    schema = arrow().Schema
    if isinstance(table, schema):
        return table
    if hasattr(table, "__arrow_c_device_array__"):
        return schema._import_from_c_capsule(table.__arrow_c_device_array__()[0])
    raise InputTypeError(f"schema= is one of pyarrow, or a table with it, not {type(table).__name__}")


def _batches_of(table: Any) -> Iterator[object]:
    """Capsules `arrow_device_array`. Raises InputTypeError."""
    from waywiser import _core

    if hasattr(table, "__arrow_c_device_stream__"):
        yield from _core.batches_of_stream(table.__arrow_c_device_stream__())
    elif hasattr(table, "__arrow_c_device_array__"):
        yield table.__arrow_c_device_array__()[1]
    else:
        raise InputTypeError(f"data has no __arrow_c_device_array__ of Arrow: it is {type(table).__name__}")


class DeviceShuffle(ShuffleCalls[DeviceRows]):
    """A `Shuffle` of rows in the memory of each rank's GPU number `gpu`. Tables have `__arrow_c_device_array__` or
    `__arrow_c_device_stream__` of Arrow, as those of cuDF; `schema` is one of pyarrow, or a table with the first.

    `parts`, `budget` and `piece` as in `Shuffle`. The program names the part of rows; their number is compared at the
    end, no hash. Bits of booleans and nulls begin at a byte, offsets at 0. Raises as `Shuffle`.
    """

    def __init__(
        self,
        group: Group,
        schema: Any,
        *,
        gpu: int,
        parts: int | None = None,
        budget: int = BUDGET,
        piece: int | None = None,
    ) -> None:
        self._start(group, lambda: _schema_of(schema), "a shuffle", Limits(parts, budget, piece), gpu)

    def insert(self, data: Any, *, part: int) -> None:
        """All rows into one part. What its library has enqueued on `data` is waited for; when it returns, the program
        may change the rows. Raises InputError for rows elsewhere, for other columns, and for a part that is completed;
        UnavailableError for bits and offsets that begin elsewhere; InputTypeError; else as the class says.
        """
        owner = number("part", part)
        for rows in _batches_of(data):
            self._core.insert_device(rows, owner)

    def extract(self, part: int) -> DeviceRows:
        """The rows of a part of this rank, by the rank that gave them, then in the order of its inserts. Waits until
        all ranks have completed it. Raises as `Shuffle.extract`.
        """
        return DeviceRows(self._core.extract_device(number("part", part)), self.schema)
