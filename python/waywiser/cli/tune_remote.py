"""`waywiser tune --remote`: the roads of arrays to the GPUs of a server."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import typer

from waywiser.errors import InputError


def tune_remote(
    address: str,
    key: Path | None,
    folder: Path,
    budget: float,
    as_json: bool,
    others: Mapping[str, object],
    data_plain: bool,
) -> None:
    """Measures all GPUs of a server; programs with the same folder of results then use the fastest roads.

    `data_plain`: both with encrypted arrays and without.
    """
    from waywiser.offload.connect import remote, state_of
    from waywiser.offload.roads import SIZES, keep, measured, times_of
    from waywiser.profile import warning
    from waywiser.progress import bar

    for option, value in others.items():
        if value:
            raise InputError(f"{option} is not for --remote, which measures a server as it is")
    file = folder / "plan.json"
    gpus = state_of(address, key=key)["gpus"]
    told: list[dict[str, Any]] = []
    for number, about in enumerate(gpus):
        ways = (True, False) if data_plain else (False,)
        series = []
        for plain in ways:
            options: dict[str, Any] = {"gpu": number, "timeout": 120, "road": "direct", "data_plain": plain}
            with remote(address, key=key, **options) as gpu, bar(about["name"]) as show:
                gpu._check_plain(plain)
                series += measured(gpu, SIZES, budget / len(gpus) / len(ways), show)
                name = gpu.name
        label = warning("virtual_gpu" if name.startswith("virtual") else "", False)
        roads = keep(file, address, number, series, label)
        rows = [
            {
                "direction": each,
                "bytes": size,
                "seconds": times,
                "chosen": roads.best(each, size, of),
                "plain": of,
            }
            for each, of, size, times in times_of(series)
        ]
        one = {"address": address, "gpu": number, "name": name, "warning": label, "rows": rows}
        told.append({**one, "encryption": roads.prices()})
    if as_json:
        typer.echo(json.dumps({"file": str(file), "gpus": told}, indent=1))
        return
    for each in told:
        for line in _table(each):
            typer.echo(line)
    typer.echo(f"plan: {file}")


def _table(told: Mapping[str, Any]) -> Iterator[str]:
    from waywiser.offload.client import DATA_ROADS
    from waywiser.offload.roads import price_line
    from waywiser.units import format_bytes, format_seconds

    label = f", {told['warning'].upper()}" if told["warning"] else ""
    for plain in sorted({row["plain"] for row in told["rows"]}):
        yield f"# {told['name']}{', arrays not encrypted' if plain else ''}{label}"
        yield f"{'# Bytes':<10}{'':>8}" + "".join(f"{road:>12}" for road in DATA_ROADS) + "  chosen"
        rows = [row for row in told["rows"] if row["plain"] == plain]
        for row in sorted(rows, key=lambda row: (row["direction"], row["bytes"])):
            times = "".join(f"{format_seconds(row['seconds'][road]):>12}" for road in DATA_ROADS)
            yield f"{format_bytes(row['bytes']):<10}{row['direction']:>8}{times}  {row['chosen']}"
    for price in told["encryption"]:
        yield price_line(price)
