"""What a person's program sends, by which mechanism and in which sizes: one more run of each variant, not timed."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from waywiser import _core
from waywiser.errors import InputError
from waywiser.look.finding import Status
from waywiser.look.root import Root
from waywiser.monitor.counters import fresh, read_counters
from waywiser.prove.benchmarks import run_benchmark
from waywiser.prove.message_sizes import MessageSizes, recorded_sizes, recording_variables
from waywiser.prove.transport_counters import Carried
from waywiser.run.rank_status import job_of
from waywiser.running.evidence import Evidence, watch
from waywiser.running.fallbacks import name_fall_backs
from waywiser.running.mechanisms import Moved, mechanisms
from waywiser.units import format_bytes


@dataclass(frozen=True)
class Sent:
    """Of one variant. `moved`: of the fullest look at its ranks; `lost`: ranks that did not have its settings; `looks`:
    how often its ranks were looked at; `fell`: the fast paths that it had lost."""

    moved: tuple[Moved, ...]
    devices: str
    sizes: tuple[MessageSizes, ...]
    looks: int
    lost: tuple[int, ...] = ()
    fell: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Rows of mechanisms and of sizes."""
        moved = [
            {"mechanism": one.mechanism, "between": one.between, "bytes": one.bytes, "counted_by": one.counted}
            for one in self.moved
        ]
        sizes = [row for one in self.sizes for row in one.rows()]
        seen = {"looks": self.looks, "lost": list(self.lost), "fall_backs": list(self.fell)}
        return {"moved": moved, "devices": self.devices, "sizes": sizes, **seen}

    def lines(self) -> list[str]:
        """For people."""
        told = [
            f"{one.mechanism}, {one.between}: {'not counted' if one.bytes is None else format_bytes(one.bytes)}"
            for one in self.moved
        ]
        if not self.looks:
            told = ["not seen: it ended before it could be looked at"]
        devices = [] if self.devices.startswith("no device") else [self.devices]
        told = told or ["nothing is seen between its processes"]
        return [*told, *devices, *(one.text for one in self.sizes), *self.fell]


class _Looks:
    """Looks at the ranks of a running program, again and again."""

    def __init__(self, variables: Mapping[str, str]) -> None:
        self._variables = variables
        self.best: Evidence | None = None
        self.count = 0
        self._most = -1
        self.lost: set[int] = set()

    def __call__(self, process: int) -> None:
        try:
            folder = Path(_core.runtime_folder())
            seen = watch(_machine, process, 0.0, lambda _: None, lambda rank: job_of(rank, folder))
        except InputError:  # it has ended, or starts several jobs
            return
        rows = mechanisms(seen)
        if seen.job.launcher != "none":
            self.lost = {rank.number for rank in seen.job.ranks if not self._has(rank.process.environment)}
        if not rows and self.best is not None:
            return
        many = sum(one.bytes or 0 for one in rows) + len(rows)
        self.count += 1
        if many >= self._most:
            self.best, self._most = seen, many

    def _has(self, environment: Mapping[str, str]) -> bool:
        return not environment or all(environment.get(name) == value for name, value in self._variables.items())


def _machine() -> Root:
    return fresh()


def record(
    command: Sequence[str], environment: Mapping[str, str], variables: Mapping[str, str], patience: float
) -> Sent:
    """Runs the program once with the variables, and watches it. Raises InputError as a timed run does."""
    looks = _Looks(variables)
    with tempfile.TemporaryDirectory(prefix="waywiser-sent-") as name:
        folder = Path(name)
        before = read_counters(fresh())
        told = {**recording_variables(folder), **environment, **variables}
        run_benchmark(command, told, command[0], patience, looks)
        devices = Carried().plus(before, read_counters(fresh())).text
        sizes = recorded_sizes(folder)
        # While the logs are there.
        moved = tuple(mechanisms(looks.best)) if looks.best else ()
        named = name_fall_backs(looks.best) if looks.best else []
    fell = tuple(f"{one.id}, {one.title}: {one.finding.text}" for one in named if one.finding.status != Status.unknown)
    return Sent(moved, devices, tuple(sizes), looks.count, tuple(sorted(looks.lost)), fell)
