"""`waywiser bench coalescing`: blocks copied one by one against blocks gathered into one copy."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from waywiser.errors import InputError, UnavailableError
from waywiser.units import format_bytes

if TYPE_CHECKING:
    from waywiser.stages import Show

SIZES = tuple(1 << power for power in range(12, 21))  # bytes of a block
COUNTS = (4, 6, 8, 10, 12, 14, 16, 20, 24, 28, 32, 40, 48, 64, 72, 80)
MEMORY = ("host>host", "host>gpu", "gpu>host", "gpu>gpu")
_LARGEST = 1 << 30  # bytes of all blocks
_COLUMNS = ("memory", "block_kib", "blocks", "speed_change_percent", "apart_us", "gathered_us", "label")


@dataclass(frozen=True)
class Point:
    """Blocks between two memories. `change`: of the speed by gathering, in percent; above 0 gathering is faster.

    `low`, `high`: its 95 % confidence interval. `apart`, `gathered`: seconds for all blocks.
    """

    memory: str
    block: int
    blocks: int
    change: float
    low: float
    high: float
    apart: float
    gathered: float
    samples: int

    @property
    def mark(self) -> str:
        """ "?" if the interval has 0 inside, so that neither way is shown to be faster."""
        return "?" if self.low <= 0 < self.high else ""


@dataclass(frozen=True)
class Wanted:
    """The request: back end, pairs of memories (empty: all that this machine has), bytes of blocks, their numbers."""

    backend: str
    memory: Sequence[str]
    sizes: Sequence[int]
    counts: Sequence[int]
    budget: float

    def __post_init__(self) -> None:
        if self.sizes[0] < 1 or self.sizes[-1] * self.counts[-1] > _LARGEST:
            raise InputError(f"coalescing: all blocks together have 1 byte to {format_bytes(_LARGEST)}")


def points(wanted: Wanted, missing: Callable[[str, str], None], show: Show) -> Iterator[Point]:
    """Measures every case; every sample is verified. A pair of memories that is not there goes to `missing`."""
    from waywiser import _core

    machine = _core.CoalescedCopies(wanted.backend, 2 if wanted.backend == "virtual_gpu" else 0)
    pairs = [pair for pair in wanted.memory or MEMORY if wanted.backend != "host" or "gpu" not in pair]
    cases = [(size, count) for size in wanted.sizes for count in wanted.counts]
    total = len(pairs) * len(cases)
    share = wanted.budget / max(1, total)
    for number, pair in enumerate(pairs):
        first, second = pair.split(">")
        places = (f"{first}0", "gpu1" if pair == "gpu>gpu" else f"{second}0")
        try:
            machine.open(*places, wanted.sizes[-1] * wanted.counts[-1])
        except UnavailableError as error:
            missing(pair, str(error))
            continue
        for done, (size, count) in enumerate(cases, number * len(cases)):
            show(done, total, share * (total - done), f"{pair} {format_bytes(size)} x {count}")
            change, low, high, apart, gathered, samples = machine.measure(size, count, share)
            yield Point(pair, size, count, change, low, high, apart, gathered, samples)
    show(total, total, 0.0, "")


def crossover(row: Sequence[Point]) -> str:
    """From how many blocks of one size on gathering is the faster, in words. Only whole intervals count: one with 0
    inside shows nothing."""
    faster, slower = [each.low > 0 for each in row], [each.high <= 0 for each in row]
    if all(faster):
        return "always"
    if all(slower):
        return "never"
    if not any(faster):
        return "not shown"
    first = faster.index(True)
    if all(faster[first:]):
        return f"from {row[first].blocks}"
    return "mixed" if any(slower[first:]) else f"from {row[first].blocks}, not shown for all"


def rows_of(found: Sequence[Point], memory: str) -> dict[int, list[Point]]:
    """The points of a pair of memories, by size of a block."""
    rows: dict[int, list[Point]] = {}
    for each in found:
        if each.memory == memory:
            rows.setdefault(each.block, []).append(each)
    return rows


def tables(found: Sequence[Point], label: str) -> list[str]:
    """For each pair of memories: percent by size and number of blocks."""
    lines: list[str] = []
    for memory in dict.fromkeys(each.memory for each in found):
        rows = rows_of(found, memory)
        counts = [each.blocks for each in max(rows.values(), key=len)]
        lines += [""] * bool(lines) + [f"# {memory}: percent of speed gained by gathering blocks{label}"]
        lines.append(f"{'# Block':<10}" + "".join(f"{count:>7}" for count in counts) + "   gathering is faster")
        for size, row in rows.items():
            cells = "".join(f"{f'{each.change:+.1f}{each.mark}':>7}" for each in row)
            lines.append(f"{format_bytes(size):<10}{cells}   {crossover(row)}")
    return lines


def as_json(found: Sequence[Point], backend: str, warning: str, left_out: dict[str, str]) -> str:
    """All points with times, as a document."""
    value: dict[str, Any] = {"schema": "waywiser.coalescing", "version": 1, "backend": backend}
    if warning:
        value |= {"simulated": True, "warning": warning}
    rows = [
        {
            "operation": "coalescing",
            "memory": each.memory,
            "block_bytes": each.block,
            "blocks": each.blocks,
            "speed_change_percent": round(each.change, 3),
            "low": round(each.low, 3),
            "high": round(each.high, 3),
            "apart_us": each.apart * 1e6,
            "gathered_us": each.gathered * 1e6,
            "samples": each.samples,
        }
        for each in found
    ]
    return json.dumps({**value, "left_out": left_out, "rows": rows}, indent=1)


def as_csv(found: Sequence[Point], warning: str) -> str:
    """A line for each point."""
    text = io.StringIO()
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow(_COLUMNS)
    for each in found:
        times = (f"{each.apart * 1e6:.5g}", f"{each.gathered * 1e6:.5g}")
        lines.writerow((each.memory, f"{each.block / 1024:g}", each.blocks, f"{each.change:.3f}", *times, warning))
    return text.getvalue()
