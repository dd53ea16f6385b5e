"""Options that several verbs share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from waywiser.results import DEFAULT, Results, recorded

Output = Annotated[
    Path, typer.Option("--output", "-o", metavar="DIR", help="Folder of the results.", show_default=True)
]
Recorded = Annotated[str | None, typer.Option("--machine", metavar="NAME", help="A recorded machine instead.")]
Budget = Annotated[
    float | None, typer.Option("--budget", min=1.0, max=86400.0, metavar="SECONDS", help="Time to spend on measuring.")
]
Quick = Annotated[bool, typer.Option("--quick", help="Fewer sizes and samples: under a minute.")]
Backend = Annotated[str, typer.Option("--backend", metavar="auto|cuda|host|virtual_gpu", help="What to measure.")]


def results_of(folder: Path = DEFAULT, machine: str | None = None) -> Results:
    """The results in `folder`, or those of a recorded machine."""
    return Results(folder) if machine is None else recorded(machine)
