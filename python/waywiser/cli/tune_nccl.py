"""`waywiser tune --nccl`: what NCCL's tuner shall choose on this machine."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from waywiser.errors import InputError

if TYPE_CHECKING:
    from waywiser.plan import PlanRow


def tune_nccl(folder: Path, ranks: int | None, budget: float, as_json: bool, others: Mapping[str, object]) -> None:
    """Measures between `ranks` GPUs (None: all), and keeps the rows in the plan."""
    from waywiser import _core
    from waywiser.bench.team import TeamError
    from waywiser.progress import bar
    from waywiser.tune.nccl_tuning import tuned_nccl

    for option, value in others.items():
        if value:
            raise InputError(f"{option} is not for --nccl, which measures the GPUs of this machine")
    count = ranks or len(_core.discover().ids("gpu"))
    if count < 2:
        raise InputError("--nccl needs two GPUs")
    try:
        with bar("NCCL") as show:
            plan, partner, presence = tuned_nccl(folder, count, budget, show)
    except TeamError as error:
        raise InputError(f"NCCL cannot be timed: {error}") from error
    rows = [row for row in plan.rows if (row.partner, row.ranks) == (partner, count)]
    file = folder / "plan.json"
    if as_json:
        told = [{"operation": row.operation, "from_bytes": row.from_bytes, "to_bytes": row.to_bytes, "way": row.way,
                 "why": row.why} for row in rows]  # fmt: skip
        typer.echo(
            json.dumps(
                {"file": str(file), "library": partner, "ranks": count, "silent_tuner": presence, "rows": told},
                indent=1,
            )
        )
        return
    typer.echo(f"# {partner}, {count} ranks: block of a rank, or whole")
    for row in rows:
        typer.echo(_line(row))
    ratios = ", ".join(f"{name} {ratio:.2f}" for name, ratio in presence.items())
    typer.echo(f"NCCL under a tuner that says nothing, in times of NCCL without one: {ratios}")
    typer.echo(f"plan: {file}; `waywiser apply` switches the tuner on, `waywiser verify --with nccl` proves it")


def _line(row: PlanRow) -> str:
    from waywiser.units import format_bytes

    end = "" if row.to_bytes == (1 << 63) - 1 else format_bytes(row.to_bytes)
    return f"{row.operation:<15}{format_bytes(row.from_bytes):>10} - {end:<10}{row.way}; {row.why}"
