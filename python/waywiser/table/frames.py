"""Tables of other libraries as tables of pyarrow, and back. No library is imported before one of its tables is used."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from waywiser.errors import InputError, InputTypeError, UnavailableError

if TYPE_CHECKING:
    import pyarrow

Frame = Any  # a pyarrow.Table or RecordBatch, a DataFrame of polars or pandas, or anything with __arrow_c_stream__


class Given(NamedTuple):
    """A table of the program, and how one like it is made."""

    table: pyarrow.Table
    back: Callable[[pyarrow.Table], Frame]


def arrow() -> Any:
    """The module pyarrow. Raises UnavailableError without it."""
    try:
        import pyarrow
        import pyarrow.compute
    except ImportError:
        raise UnavailableError("waywiser.table needs pyarrow: pip install pyarrow") from None
    return pyarrow


def given(frame: Frame, name: str = "data") -> Given:
    """Raises InputTypeError for what is no table; UnavailableError without pyarrow."""
    pa = arrow()
    library = type(frame).__module__.split(".")[0]
    if isinstance(frame, pa.Table):
        table, back = frame, _same
    elif isinstance(frame, pa.RecordBatch):
        table, back = pa.Table.from_batches([frame]), _same
    elif library == "pandas" and hasattr(frame, "columns"):
        table, back = pa.Table.from_pandas(frame, preserve_index=False), _to_pandas
    elif library == "polars" and hasattr(frame, "to_arrow") and hasattr(frame, "columns"):
        table, back = frame.to_arrow(), _to_polars
    elif hasattr(frame, "__arrow_c_stream__"):
        table, back = pa.table(frame), _same
    else:
        raise InputTypeError(f"{name} is a table of pyarrow, polars or pandas, not {type(frame).__name__}")
    return Given(table.replace_schema_metadata(None), back)


def _same(table: pyarrow.Table) -> Frame:
    return table


def _to_pandas(table: pyarrow.Table) -> Frame:
    return table.to_pandas()


def _to_polars(table: pyarrow.Table) -> Frame:
    import polars

    return polars.from_arrow(table)


def names(given_names: str | Sequence[str], what: str) -> list[str]:
    """One name of a column, or several. Raises InputError for none, InputTypeError for others."""
    listed = [given_names] if isinstance(given_names, str) else list(given_names)
    if not all(isinstance(each, str) for each in listed):
        raise InputTypeError(f"{what}= has names of columns")
    if not listed or len(set(listed)) < len(listed):
        raise InputError(f"{what}={listed}: one column or more, each once")
    return listed


def places(table: pyarrow.Table, wanted: Sequence[str], what: str) -> list[int]:
    """Raises InputError for a column that is not there, or is there twice."""
    for name in wanted:
        if (count := table.column_names.count(name)) != 1:
            raise InputError(f"{what}= has {name!r}, of which the table has {count or 'no'} column{'s' * (count > 1)}")
    return [table.column_names.index(name) for name in wanted]


def key_places(table: pyarrow.Table, wanted: Sequence[str], what: str) -> list[int]:
    """As `places`, and UnavailableError for a column whose type has no hash."""
    found = places(table, wanted, what)
    types = arrow().types
    for name, kind in ((name, value_type(table.schema.field(name).type)) for name in wanted):
        if types.is_nested(kind) or types.is_null(kind):
            raise UnavailableError(f"column {name!r} is no key: it is {kind}")
    return found


def decoded(column: Any) -> Any:
    """The values of a column whose type is a dictionary, whatever dictionary each of its chunks has."""
    pa = arrow()
    if not pa.types.is_dictionary(column.type):
        return column
    chunks = [chunk.dictionary_decode() for chunk in column.chunks]
    return pa.chunked_array(chunks, column.type.value_type)


def value_type(kind: Any) -> Any:
    """The type that `decoded` gives."""
    return kind.value_type if arrow().types.is_dictionary(kind) else kind
