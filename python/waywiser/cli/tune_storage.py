"""`waywiser tune --storage DIR`: the ways to the files of a folder."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from waywiser.errors import InputError

if TYPE_CHECKING:
    from waywiser.group.gpus import Gpus
    from waywiser.plan import PlanRow


def tune_storage(
    folder: Path, results: Path, budget: float, as_json: bool, others: Mapping[str, object], machine: str | None = None
) -> None:
    """Measures all ways to files in `folder`; programs with the same folder of results then use the fastest. Those of
    `machine` are simulated: `folder` is a kind of storage."""
    from waywiser.progress import bar, say
    from waywiser.signals import ended_by_signals
    from waywiser.tune.storage_tuning import keep, measured

    for option, value in others.items():
        if value:
            raise InputError(f"{option} is not for --storage, which measures the files of one machine")
    if machine is not None:
        from waywiser.tune.storage_simulated import simulated_times

        times = simulated_times(machine, str(folder))
    else:
        with ended_by_signals(), bar(f"files in {folder}") as show:
            times = measured(folder, budget, show, gpus=_gpus())
    file = results / "plan.json"
    rows = keep(file, times)
    told = [{"memory": memory, "work": each, "bytes": size, "seconds": of, "chosen": _chosen(rows, memory, each, size)}
            for memory, each, size, of in _times(times.series)]  # fmt: skip
    if as_json:
        about = {"file": str(file), "storage": times.storage, "simulated": machine is not None}
        found = {**about, "notes": times.notes, "rows": told}
        typer.echo(json.dumps(found, indent=1))
        return
    for note in times.notes:
        say(note)
    from waywiser.report.simulated import LABEL

    for line in _table(times.storage + (f", {machine}. {LABEL}" if machine is not None else ""), told):
        typer.echo(line)
    typer.echo(f"plan: {file}")


def _gpus() -> Gpus | None:
    """Those of the machine, if it has any."""
    from waywiser.errors import Error
    from waywiser.group.gpus import cuda_gpus

    try:
        return cuda_gpus()
    except Error:
        return None


def _chosen(rows: list[PlanRow], memory: str, work: str, size: int) -> str:
    return next(
        row.way
        for row in rows
        if (row.memory, row.operation) == (memory, work) and row.from_bytes <= size <= row.to_bytes
    )


def _times(series: list[dict[str, Any]]) -> Iterator[tuple[str, str, int, dict[str, float]]]:
    """For each memory, work and size the seconds of each way."""
    found: dict[tuple[str, str, int], dict[str, float]] = {}
    for one in series:
        for point in one["points"]:
            key = (one["memory"], one["operation"], point["bytes"])
            found.setdefault(key, {})[one["way"]] = point["seconds"]
    for (memory, work, size), seconds in sorted(found.items(), key=lambda each: (each[0][0] == "gpu", each[0])):
        yield memory, work, size, seconds


def _table(storage: str, told: list[dict[str, Any]]) -> Iterator[str]:
    from waywiser.units import format_bytes, format_seconds

    yield f"# {storage}"
    yield f"{'# memory':<9}{'work':<18}{'bytes':>8}{'time':>10}{'MB/s':>9}  {'chosen':<30}slowest"
    for row in told:
        seconds, chosen = row["seconds"], row["chosen"]
        least = seconds.get(chosen, min(seconds.values()))
        slow = max(seconds, key=lambda way: seconds[way])
        rate = f"{row['bytes'] / least / 1e6:.0f}"
        yield (
            f"{row['memory']:<9}{row['work']:<18}{format_bytes(row['bytes']):>8}"
            f"{format_seconds(least):>10}{rate:>9}  {chosen:<30}{slow}: {seconds[slow] / least:.2f} times as long"
        )
