"""`waywiser bench merge`: two tables of random keys over all ranks, joined; by each way, and simulated."""

from __future__ import annotations

import csv
import io
import itertools
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from waywiser.bench.started_ranks import STARTING, answer_of
from waywiser.errors import InputError, TransferError, UnavailableError
from waywiser.simulator.exchange import exchange
from waywiser.topology import load_topology
from waywiser.units import format_bytes, format_rate, format_seconds

if TYPE_CHECKING:
    from waywiser.simulator.assumptions import Assumption
    from waywiser.stages import Show

MATCH, ROW, TABLES = 0.3, 16, 2  # a key and a payload of 8 bytes each
SIZES, SIMULATED_SIZES = (16 << 20,), (1 << 30,)
# What the group's messages are told to use; `plan`: nothing, so the plan, or the defaults without one.
WAYS: dict[str, dict[str, str]] = {
    "plan": {},
    "ucx": {"WAYWISER_MAILBOX": "short"},
    "tcp": {"WAYWISER_MAILBOX": "short", "WAYWISER_UCX_TLS": "tcp,self"},
}
_RDMA = ("ucx transports=ib gdr=on gdrcopy=on nics=1", "ucx transports=ib gdr=off gdrcopy=on nics=1")
_NVLINK, _TCP = "ucx transports=cuda_ipc", "ucx transports=tcp"
_STAGED = "host_staged variant=pipelined chunk=4M depth=4"
# Each pair of GPUs takes the fastest that serves it: where there is no NVLink, UCX has what else it is given.
SIMULATED: dict[str, tuple[str, ...]] = {
    "tcp": (_TCP,),
    "nvlink": (_NVLINK, _TCP),
    "infiniband": _RDMA,
    "infiniband+nvlink": (_NVLINK, *_RDMA),
    "plan": ("copy_engine", _NVLINK, *_RDMA, _STAGED),
}
# The published bars, bytes of both tables over the time of the program: 8 GPUs of one dgx-1v.
PUBLISHED = {"dgx-1v": {"tcp": 1.9e9, "nvlink": 3.9e9, "infiniband": 11.7e9}}
_COLUMNS = ("way", "ranks", "bytes", "gb_per_s", "us", "exchange_us", "join_us", "published_gb_per_s", "label")


@dataclass(frozen=True)
class Case:
    """One bar: the bytes of both tables of all ranks, the median round (`exchange`: until all rows have met; `join`: at
    each rank), by which ways the bytes between ranks went. Simulated: the exchange alone, `ways` counts pairs.
    """

    way: str
    ranks: int
    bytes: int
    seconds: float
    exchange: float
    join: float
    ways: Mapping[str, int]
    rounds: int = 0
    rows: int = 0
    simulated: bool = False
    published: float | None = None
    assumed: list[Assumption] = field(default_factory=list)

    @property
    def rate(self) -> float:
        return self.bytes / self.seconds


@dataclass(frozen=True)
class Wanted:
    """`sizes`: bytes of one table at one rank. `budget` in seconds."""

    ranks: int
    sizes: Sequence[int]
    budget: float

    def check(self) -> None:
        for size in self.sizes:
            if not 1024 <= size <= 1 << 36:
                raise InputError(f"merge: --sizes {format_bytes(size)}: a table at a rank has 1K to 64G")


def cases(wanted: Wanted, missing: Callable[[str, str], None], show: Show) -> Iterator[Case]:
    """Measures each size by each way, in a job of its own. What cannot be timed goes to `missing`."""
    all_cases = [(size, way) for size in wanted.sizes for way in WAYS]
    share = wanted.budget / len(all_cases)
    for done, (size, way) in enumerate(all_cases):
        show(done, len(all_cases), share * (len(all_cases) - done), f"{way}, {format_bytes(size)}")
        try:
            yield _measured(way, wanted.ranks, size, share)
        except TransferError as error:
            missing(f"{way}, {format_bytes(size)}", str(error))
    show(len(all_cases), len(all_cases), 0.0, "")


def _measured(way: str, ranks: int, size: int, seconds: float) -> Case:
    """Raises TransferError."""
    rows = size // ROW
    threads = max(1, len(os.sched_getaffinity(0)) // ranks)
    order = {"rows": rows, "match": MATCH, "seconds": seconds, "threads": threads, "timeout": STARTING}
    environment = {**os.environ, **WAYS[way]}
    found = answer_of("waywiser.bench.merge_rank", ranks, order, environment, seconds, "rounds")
    # One round, so that its parts belong together.
    all_of_it, exchanged, joined = sorted(found["rounds"])[len(found["rounds"]) // 2]
    whole = TABLES * rows * ROW * ranks
    return Case(way, ranks, whole, all_of_it, exchanged, joined, found["ways"], len(found["rounds"]), found["rows"])


def simulated(machine: str, size: int, missing: Callable[[str, str], None], show: Show) -> Iterator[Case]:
    """The exchange alone on the GPUs of one node, by each way; local work is not simulated."""
    topology = load_topology(machine)
    ranks = len(topology.ids("gpu"))
    published = PUBLISHED.get(topology.name, {})
    for done, (way, paths) in enumerate(SIMULATED.items()):
        show(done, len(SIMULATED), 0.0, way)
        try:
            found = exchange(topology, paths, TABLES * size // ranks)
        except UnavailableError as error:
            missing(way, str(error))
            continue
        yield Case(way, ranks, TABLES * size * ranks, found.seconds, found.seconds, 0.0, found.pairs, simulated=True,
                   published=published.get(way), assumed=found.assumed)  # fmt: skip
    show(len(SIMULATED), len(SIMULATED), 0.0, "")


def tables(found: Sequence[Case], label: str) -> list[str]:
    """A line for each way, and what it was made of."""
    if not found:
        return []
    simulates = found[0].simulated
    what = "an exchange of both tables between GPUs" if simulates else f"a merge, {MATCH:.0%} match"
    lines = [f"# {what}: bytes of both tables of all ranks / time{label}"]
    heads = ["way", "ranks", "both tables", "rate"]
    heads += ["published", "ratio"] if simulates else ["whole", "exchange", "join", "rounds"]
    rows = [heads]
    for one in found:
        row = [one.way, str(one.ranks), format_bytes(one.bytes), format_rate(one.rate)]
        if simulates:
            row += [format_rate(one.published), f"{one.rate / one.published:.3g}"] if one.published else ["-", "-"]
        else:
            row += [format_seconds(each) for each in (one.seconds, one.exchange, one.join)] + [str(one.rounds)]
        rows.append([*row, _words(one)])
    widths = [max(len(row[i]) for row in rows) for i in range(len(heads))]
    for row in rows:
        cells = [
            row[0].ljust(widths[0]),
            *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=False)),
        ]
        lines.append("  ".join([*cells[: len(heads)], *row[len(heads) :]]).rstrip())
    return lines + factors(found)


def _words(one: Case) -> str:
    if one.simulated:
        return ", ".join(f"{count} pairs {path}" for path, count in one.ways.items())
    return ", ".join(f"{format_bytes(size)} by {way}" for way, size in one.ways.items())


def factors(found: Sequence[Case]) -> list[str]:
    """From each published bar to the next: published, simulated."""
    barred = [one for one in found if one.published]
    lines = []
    for one, other in itertools.pairwise(barred):
        assert one.published and other.published
        published, ours = other.published / one.published, other.rate / one.rate
        lines.append(
            f"{other.way} / {one.way}: published {published:.2f}, simulated {ours:.2f} ({ours / published - 1:+.0%})"
        )
    return lines


def as_json(found: Sequence[Case], backend: str, warning: str, left_out: dict[str, str]) -> str:
    """All cases, as a document."""
    value: dict[str, Any] = {"schema": "waywiser.merge", "version": 1, "backend": backend}
    if warning:
        value |= {"simulated": True, "warning": warning}
    rows = [
        {"way": one.way, "ranks": one.ranks, "bytes": one.bytes, "gb_per_s": one.rate / 1e9, "us": one.seconds * 1e6,
         "exchange_us": one.exchange * 1e6, "join_us": one.join * 1e6, "rounds": one.rounds, "rows": one.rows,
         "ways": dict(one.ways), "published_gb_per_s": one.published and one.published / 1e9, "assumed": one.assumed}
        for one in found
    ]  # fmt: skip
    return json.dumps({**value, "left_out": left_out, "rows": rows}, indent=1)


def as_csv(found: Sequence[Case], warning: str) -> str:
    """A line for each case."""
    text = io.StringIO()
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow(_COLUMNS)
    for one in found:
        times = [f"{seconds * 1e6:.5g}" for seconds in (one.seconds, one.exchange, one.join)]
        published = f"{one.published / 1e9:.4g}" if one.published else ""
        lines.writerow((one.way, one.ranks, one.bytes, f"{one.rate / 1e9:.5g}", *times, published, warning))
    return text.getvalue()
