"""`waywiser bench --with-compute`: collectives and a computation, each alone and both at once."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from waywiser.bench.started_ranks import STARTING, answer_of
from waywiser.errors import InputError

OPERATIONS = ("all_reduce", "all_gather", "reduce_scatter", "broadcast", "all_to_all")
USUAL = ("all_reduce", "all_gather")
BLOCKS = (0, 32, 16, 8, 4)  # most blocks of a kernel; 0: no limit
SIZES = {"host": (1 << 20,), "virtual_gpu": (1 << 18,), "cuda": (1 << 20, 1 << 24, 1 << 28)}
_COMPUTATIONS = {"host": ("matmul",), "virtual_gpu": ("matmul",), "cuda": ("matmul", "copy")}
_SETTING_UP = 20.0  # seconds, beside the time of the measurement
_COLUMNS = (
    "operation", "bytes", "max_ctas", "computation", "alone_us", "computation_us", "at_once_us", "loses_percent",
    "computation_loses_percent", "label",
)  # fmt: skip


@dataclass(frozen=True)
class Row:
    """A collective beside a computation, all in seconds: medians of samples that take turns, at the slowest rank.

    `alone` is of one call, and so is `beside`, while the computation runs. `computation` is of the computation that
    lasts as long as the calls of a sample, `computation_beside` the same while they run, and `at_once` from the
    beginning of both to the end of both. `max_ctas`: 0 is no limit."""

    operation: str
    bytes: int
    max_ctas: int
    computing: str
    calls: int
    samples: int
    alone: float
    beside: float
    computation: float
    computation_beside: float
    at_once: float

    @property
    def loses(self) -> float:
        """Percent by which the collective takes longer beside the computation."""
        return (self.beside / self.alone - 1) * 100

    @property
    def computation_loses(self) -> float:
        """Percent by which the computation takes longer beside the collective."""
        return (self.computation_beside / self.computation - 1) * 100

    @property
    def one_after_the_other(self) -> float:
        """Seconds of both without any overlap."""
        return self.alone * self.calls + self.computation


@dataclass(frozen=True)
class Wanted:
    """`backend`: host, cuda or virtual_gpu. `budget` in seconds, for all."""

    backend: str
    operations: Sequence[str]
    sizes: Sequence[int]
    ranks: int
    budget: float


def rows(wanted: Wanted) -> list[Row]:
    """Starts the ranks. Raises TransferError."""
    order = {
        "backend": wanted.backend, "operations": list(wanted.operations), "sizes": list(wanted.sizes),
        "blocks": [0] if wanted.backend == "host" else list(BLOCKS), "computations": _COMPUTATIONS[wanted.backend],
        "seconds": wanted.budget, "timeout": STARTING,
    }  # fmt: skip
    kept = {name: value for name, value in os.environ.items() if not name.startswith("WAYWISER_RANK")}
    one_thread = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    seconds = wanted.budget + _SETTING_UP
    found = answer_of("waywiser.bench.with_compute_rank", wanted.ranks, order, kept | one_thread, seconds, "rows")
    return [Row(**one) for one in found["rows"]]


def operations_among(words: Sequence[str]) -> list[str]:
    """Raises InputError for others than OPERATIONS."""
    for word in words:
        if word not in OPERATIONS:
            raise InputError(f"--with-compute: {word}: write some of {', '.join(OPERATIONS)}")
    return list(words) or list(USUAL)


def tables(found: Sequence[Row], label: str) -> list[str]:
    """A table for each computation: microseconds, and how much each loses to the other."""
    lines: list[str] = []
    for computing in dict.fromkeys(row.computing for row in found):
        lines.append(f"# collectives beside a computation, {_NAMES[computing]}{label}")
        lines.append(
            f"{'# operation':<16}{'bytes':>11}{'blocks':>8}{'alone us':>11}{'loses %':>9}{'computes us':>13}"
            f"{'loses %':>9}{'both us':>11}{'of the sum':>12}"
        )
        for row in found:
            if row.computing == computing:
                lines.append(
                    f"{row.operation:<16}{row.bytes:>11}{row.max_ctas or 'any':>8}{row.alone * 1e6:>11.4g}"
                    f"{row.loses:>9.1f}{row.computation * 1e6:>13.4g}{row.computation_loses:>9.1f}"
                    f"{row.at_once * 1e6:>11.4g}{row.at_once / row.one_after_the_other:>12.2f}"
                )
    return lines


_NAMES = {"matmul": "products of matrices", "copy": "a copy to the host of 20 GB/s"}


def as_json(found: Sequence[Row], backend: str, warning: str, left_out: Mapping[str, str]) -> str:
    """All rows, as a document."""
    value: dict[str, Any] = {"schema": "waywiser.with_compute", "version": 1, "backend": backend}
    if warning:
        value |= {"simulated": True, "warning": warning}
    told = [
        {"operation": row.operation, "bytes": row.bytes, "max_ctas": row.max_ctas, "computation": row.computing,
         "calls": row.calls, "samples": row.samples, "alone_us": row.alone * 1e6, "beside_us": row.beside * 1e6,
         "computation_us": row.computation * 1e6, "computation_beside_us": row.computation_beside * 1e6,
         "at_once_us": row.at_once * 1e6, "loses_percent": row.loses,
         "computation_loses_percent": row.computation_loses}
        for row in found
    ]  # fmt: skip
    return json.dumps({**value, "left_out": dict(left_out), "rows": told}, indent=1)


def as_csv(found: Sequence[Row], warning: str) -> str:
    """A line for each row."""
    text = io.StringIO()
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow(_COLUMNS)
    for row in found:
        times = (f"{one * 1e6:.5g}" for one in (row.alone, row.computation, row.at_once))
        losses = (f"{one:.3g}" for one in (row.loses, row.computation_loses))
        lines.writerow((row.operation, row.bytes, row.max_ctas, row.computing, *times, *losses, warning))
    return text.getvalue()
