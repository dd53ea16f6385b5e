"""The table of parts that machines are made of: what their data sheets say, each figure with its source."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from waywiser.errors import InputError

KINDS = {"gpu": "GPU", "cpu": "CPU", "nic": "NIC"}
_NEAREST = 5
# Words that people leave out of a name.
_IDLE = ("nvidia", "tesla", "intel", "xeon", "platinum", "gold", "amd", "epyc")


@dataclass(frozen=True)
class Part:
    """One row: the name of the device, further names, the figures."""

    kind: str
    names: tuple[str, ...]
    source: str
    figures: dict[str, Any]
    sources: dict[str, str]

    @property
    def name(self) -> str:
        return self.names[0]

    @property
    def short(self) -> str:
        """The shortest name, without maker and family."""
        names = (" ".join(word for word in name.split() if word.lower() not in _IDLE) for name in self.names)
        return min(names, key=len)

    def source_of(self, figure: str) -> str:
        return self.sources.get(figure, self.source)


@cache
def parts() -> tuple[Part, ...]:
    """All rows, in the order of the file."""
    text = resources.files("waywiser").joinpath("topology").joinpath("data_sheets.json").read_text(encoding="utf-8")
    return tuple(
        Part(row["kind"], tuple(row["names"]), row["source"], row["figures"], row.get("sources", {}))
        for row in json.loads(text)["parts"]
    )


def part_named(kind: str, name: str, what: str) -> Part:
    """The part that `name` means; case, blanks, hyphens, the maker and the family do not matter.

    `what` names the option in messages. Raises InputError with the nearest names for a part that is not in the table.
    """
    rows = [row for row in parts() if row.kind == kind]
    for row in rows:
        if _plain(name) in map(_plain, row.names):
            return row
    near = ", ".join(_nearest(name, rows))
    raise InputError(f"{what}: {name[:60]!r} is no {KINDS[kind]} in the table of parts; the nearest are {near}")


def peak_of(name: str) -> tuple[float, str] | None:
    """16-bit operations a second of a GPU of this name by its data sheet, without sparsity, and the source."""
    for row in parts():
        if row.kind == "gpu" and "peak_16_bit" in row.figures and _plain(name) in map(_plain, row.names):
            return float(row.figures["peak_16_bit"]), row.source_of("peak_16_bit")
    return None


def _plain(name: str) -> str:
    words = [word for word in re.split(r"[\s_-]+", name.lower()) if word not in _IDLE]
    return "".join(words)


def _nearest(name: str, rows: Sequence[Part]) -> list[str]:
    """Short names of the parts whose names are most alike."""

    def likeness(row: Part) -> float:
        return max(difflib.SequenceMatcher(None, _plain(name), _plain(one)).ratio() for one in row.names)

    return [row.short for row in sorted(rows, key=likeness, reverse=True)[:_NEAREST]]
