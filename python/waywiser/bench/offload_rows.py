"""The rows of `waywiser bench offload`, each printed as soon as it is measured."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from waywiser.bench.offload import Case
from waywiser.bench.outcome import CSV, JSON
from waywiser.offload.client import POINTS
from waywiser.units import format_seconds

_COLUMNS = (
    "road", "elements", "times", *(f"{point}_us" for point in POINTS), "whole_us", "overhead_us",
    "whole_less_device_us", "rounds", "label",
)  # fmt: skip


class Rows:
    """Writes cases as TABLE, JSON or CSV of waywiser.bench.outcome. What is written is whole after end().

    `roads`: all that come; `warning`: labels figures of virtual GPUs; `write` takes text that ends with its line;
    `networks`: the kinds of those that were asked for, by name; `left_out`: why some of them are not there.
    """

    def __init__(
        self,
        form: str,
        backend: str,
        warning: str,
        roads: Sequence[str],
        write: Callable[[str], object],
        networks: Mapping[str, str] | None = None,
        left_out: Mapping[str, str] | None = None,
    ) -> None:
        self._form, self._warning, self._write = form, warning, write
        self._networks = networks or {}
        self._width = max(map(len, roads))
        self._any = False
        if form == JSON:
            write(_head_as_json(backend, warning, self._networks, left_out or {}) + '"rows": [')
        elif form == CSV:
            write(_csv_line(dict(zip(_COLUMNS, _COLUMNS, strict=True))))
        else:
            for line in self._heads():
                write(f"{line}\n")

    def add(self, case: Case) -> None:
        """Writes one case."""
        if self._form == JSON:
            lines = json.dumps(_row_as_json(case), indent=1).replace("\n", "\n  ")
            self._write(f"{',' * self._any}\n  {lines}")
        elif self._form == CSV:
            fields = _row(case)
            text = {name: f"{value:.6g}" if isinstance(value, float) else value for name, value in fields.items()}
            self._write(_csv_line({**text, "label": self._warning}))
        else:
            run = case.run
            values = (*run.seconds, run.whole, run.overhead, run.whole - run.at("device"))
            head = f"{case.road:<{self._width}}{case.elements:>12}{case.times:>7}"
            self._write(head + "".join(f"{_time(value):>13}" for value in values) + "\n")
        self._any = True

    def end(self) -> None:
        """Nothing more comes, be it that the run was ended."""
        if self._form == JSON:
            self._write("\n ]\n}\n" if self._any else "]\n}\n")

    def _heads(self) -> list[str]:
        heads = [point.replace("client_", "c.").replace("server_", "s.") for point in POINTS]
        heads += ["whole", "overhead", "whole-device"]
        label = f", {self._warning.upper()}" if self._warning else ""
        columns = f"{'# road':<{self._width}}{'elements':>12}{'times':>7}" + "".join(f"{head:>13}" for head in heads)
        kinds = [f"# {name}: {kind}" for name, kind in self._networks.items()]
        return [f"# c: as the client sees it, s: as the server does{label}", *kinds, columns]


def _time(seconds: float) -> str:
    return ("-" if seconds < 0 else "") + format_seconds(abs(seconds))


def _head_as_json(backend: str, warning: str, networks: Mapping[str, str], left_out: Mapping[str, str]) -> str:
    head: dict[str, Any] = {"schema": "waywiser.offload", "version": 1, "backend": backend}
    if warning:
        head |= {"simulated": True, "warning": warning}
    if networks:
        head["networks"] = networks
    return json.dumps({**head, "left_out": left_out}, indent=1).removesuffix("\n}") + ",\n "


def _csv_line(row: dict[str, Any]) -> str:
    text = io.StringIO()
    csv.DictWriter(text, _COLUMNS, lineterminator="\n").writerow(row)
    return text.getvalue()


def _row(case: Case) -> dict[str, Any]:
    run = case.run
    return {
        "road": case.road, "elements": case.elements, "times": case.times,
        **{f"{point}_us": value * 1e6 for point, value in zip(POINTS, run.seconds, strict=True)},
        "whole_us": run.whole * 1e6, "overhead_us": run.overhead * 1e6,
        "whole_less_device_us": (run.whole - run.at("device")) * 1e6, "rounds": case.rounds,
    }  # fmt: skip


def _row_as_json(case: Case) -> dict[str, Any]:
    """With the spans of its last requests on the client's clock."""
    row: dict[str, Any] = {"operation": "offload", **_row(case)}
    if case.run.spans:
        places = [point for point in POINTS if point != "device"]
        spans = zip(places, case.run.spans, strict=True)
        row["spans_us"] = {point: [begin * 1e6, end * 1e6] for point, (begin, end) in spans}
        row["clock_error_us"] = case.run.clock_error * 1e6
    return row
