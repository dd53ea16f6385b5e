"""Tables made up by chance, for tests: the same whole table at every rank, cut among the ranks unevenly."""

from __future__ import annotations

import datetime
import decimal
import random
from typing import Any

import pyarrow as pa

NAN = float("nan")
ROWS = (0, 1, 3, 40, 300)
# What a column of each kind has, by chance. Few values, so that keys meet.
KINDS: dict[str, tuple[pa.DataType, Any]] = {
    "int64": (pa.int64(), lambda r: r.randrange(-8, 8)),
    "uint8": (pa.uint8(), lambda r: r.randrange(6)),
    "float64": (pa.float64(), lambda r: r.choice([0.5, NAN, 2.0, float("inf")])),
    "float32": (pa.float32(), lambda r: r.choice([0.5, NAN, 2.0])),
    "bool": (pa.bool_(), lambda r: r.random() < 0.5),
    "string": (pa.string(), lambda r: "ä" * r.randrange(4)),
    "large_binary": (pa.large_binary(), lambda r: bytes(r.randrange(4))),
    "date32": (pa.date32(), lambda r: datetime.date(2020, 1, 1 + r.randrange(9))),
    "timestamp": (pa.timestamp("us", "Europe/Paris"), lambda r: r.randrange(5) * 10**12),
    "decimal": (pa.decimal128(20, 3), lambda r: decimal.Decimal(r.randrange(5)).scaleb(-3)),
    "fixed": (pa.binary(5), lambda r: bytes([r.randrange(4)] * 5)),
    "dictionary": (pa.dictionary(pa.int16(), pa.string()), lambda r: r.choice(["red", "green", "blue", ""])),
}
NESTED: dict[str, tuple[pa.DataType, Any]] = {
    "null": (pa.null(), lambda r: None),
    "list": (pa.list_(pa.int32()), lambda r: [r.randrange(99) for _ in range(r.randrange(4))]),
    "large_list": (pa.large_list(pa.string()), lambda r: ["x" * r.randrange(5)] * r.randrange(3)),
    "fixed_list": (pa.list_(pa.float64(), 3), lambda r: [r.random(), None, 1.0]),
    "struct": (
        pa.struct([("a", pa.int8()), ("b", pa.list_(pa.bool_()))]),
        lambda r: {"a": r.choice([None, 7]), "b": r.choice([None, [], [True, None]])},
    ),
    "map": (pa.map_(pa.string(), pa.int32()), lambda r: [("k", r.randrange(9))] * r.randrange(2)),
}


def column(kind: str, rows: int, nulls: float, chance: random.Random) -> pa.Array:
    made, value = (KINDS | NESTED)[kind]
    values = [None if chance.random() < nulls else value(chance) for _ in range(rows)]
    return pa.array(values, made)


def table(kinds: list[str], rows: int, nulls: float, chance: random.Random, prefix: str = "c") -> pa.Table:
    arrays = [column(kind, rows, nulls, chance) for kind in kinds]
    return pa.table(arrays, [f"{prefix}{i}" for i in range(len(kinds))])


def cut(whole: pa.Table, rank: int, size: int, chance: random.Random) -> pa.Table:
    """The rows of one rank: unequal shares, some of them empty, in chunks."""
    ends = sorted(chance.randrange(whole.num_rows + 1) for _ in range(size - 1))
    begin, end = [0, *ends][rank], [*ends, whole.num_rows][rank]
    mine = whole.slice(begin, end - begin)
    middle = mine.num_rows // 3
    return pa.concat_tables([mine.slice(0, middle), mine.slice(middle)])


def sorted_rows(some: pa.Table) -> list[str]:
    """The rows in an order that does not depend on theirs; NaN equals itself as text."""
    return sorted(map(repr, some.to_pylist()))
