"""The results of a run of `waywiser bench`, as tables and as JSON."""

from __future__ import annotations

import csv
import io
import json
import os
from dataclasses import dataclass, field
from typing import Any

import typer

from waywiser.bench.row import Row
from waywiser.bench.table import tables
from waywiser.profile import warning
from waywiser.progress import say

TABLE, JSON, CSV = "table", "json", "csv"
_HEAD = ("operation", "memory", "mode", "ranks", "bytes")
_FIGURES = ("us", "p99_us", "avg_us", "min_us", "max_us", "gb_per_s", "samples", "calls_per_sample")
_COLUMNS = (*_HEAD, "library", *_FIGURES, "compute_us", "alone_us", "overlap", "label")


@dataclass
class Outcome:
    """`kind`: the back end, or "simulated". `left_out`: unavailable peers, with the reasons."""

    kind: str
    rows: list[Row] = field(default_factory=list)
    versions: dict[str, str] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)
    load: str = field(default_factory=lambda: " ".join(f"{one:.2f}" for one in os.getloadavg()))

    def missing(self, name: str, why: str) -> None:
        """Prints the reason at once, and keeps it."""
        say(f"{name}: {why}")
        self.left_out[name] = why if name not in self.left_out else f"{self.left_out[name]}; {why}"

    @property
    def warning(self) -> str:
        """The warning if the figures are not real measurements; else empty."""
        return warning("virtual_gpu" if self.kind == "virtual_gpu" else "", self.kind == "simulated")

    def lines(self, full: bool) -> list[str]:
        label = f", {self.warning.upper()}" if self.warning else ""
        told = [f"# {self._machine()}"] if self.rows else []
        told += [f"# {name}: {text}" for name, text in self.versions.items() if text]
        told += [f"# {name} left out: {why}" for name, why in self.left_out.items()]
        return [*told, *([""] if told else []), *tables(self.rows, label, full)]

    def _machine(self) -> str:
        if self.kind == "simulated":
            return "simulated: nothing was measured"
        return f"{os.uname().nodename}, {len(os.sched_getaffinity(0))} CPUs, load {self.load} at the start"

    def as_json(self) -> dict[str, Any]:
        told: dict[str, Any] = {"schema": "waywiser.bench", "version": 1, "backend": self.kind}
        if self.warning:
            told |= {"simulated": True, "warning": self.warning}
        if self.kind != "simulated":
            told |= {"cpus": len(os.sched_getaffinity(0)), "processor": _processor(), "load": self.load}
        told |= {"versions": self.versions, "left_out": self.left_out}
        return {**told, "rows": [row.as_json() for row in self.rows]}

    def as_csv(self) -> str:
        """A line for each library and size, ours first; times are in microseconds, empty columns do not apply."""
        text = io.StringIO()
        lines = csv.DictWriter(text, _COLUMNS, restval="", lineterminator="\n")
        lines.writeheader()
        for row in self.rows:
            told = row.as_json()
            head = {name: told[name] for name in _HEAD}
            for library, figures in {"waywiser": row.ours, **row.peers}.items():
                rate = float(f"{row.rate(figures) / 1e9:.5g}")
                lines.writerow(
                    {**head, "library": library, "label": self.warning, **figures.as_json(), "gb_per_s": rate}
                )
        return text.getvalue()

    def show(self, full: bool, form: str) -> None:
        """Prints to standard output, as TABLE, JSON or CSV."""
        if form == JSON:
            typer.echo(json.dumps(self.as_json(), indent=1))
            return
        if form == CSV:
            typer.echo(self.as_csv(), nl=False)
            return
        for line in self.lines(full):
            typer.echo(line)


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as lines:
            return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")
    except OSError:
        return ""
