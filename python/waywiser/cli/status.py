"""`waywiser status`: shows the current calls of the ranks of a running job."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from waywiser.errors import InputError
from waywiser.json_fields import clean
from waywiser.run.rank_status import RankStatus, job_of


def status(
    process: Annotated[int, typer.Argument(metavar="PID", min=1, help="Process id of a rank, or of `waywiser run`.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show the current call of each rank of a job on this machine."""
    from waywiser import _core

    _core.sweep_runtime_folder()
    ranks = job_of(process, Path(_core.runtime_folder()))
    if not ranks:
        raise InputError(f"process {process} is not in a running group of yours on this machine")
    if as_json:
        print(json.dumps([_as_dict(rank) for rank in ranks], indent=1))
        return
    _print(ranks)


def _as_dict(rank: RankStatus) -> dict[str, Any]:
    names = ("rank", "process", "host", "call", "waited", "progress_thread")
    return {name: getattr(rank, name) for name in names}


def _print(ranks: list[RankStatus]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for head in ("rank", "process", "is in", "waiting for", "progress thread"):
        table.add_column(head, justify="left" if head in ("is in", "progress thread") else "right")
    for rank in ranks:
        waited = f"{rank.waited:.0f} s" if rank.waited else ""
        thread = clean(rank.progress_thread or "none")
        table.add_row(str(rank.rank), str(rank.process), clean(rank.call or "the program itself"), waited, thread)
    console = Console(highlight=False, soft_wrap=True)
    console.print(table)
    if len(ranks) < ranks[0].size:
        console.print(f"\n{len(ranks)} of {ranks[0].size} ranks answered on this machine.", markup=False)
