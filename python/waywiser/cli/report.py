"""`waywiser report`: draws the page and the pictures again from the files of the results."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from waywiser.cli.options import Recorded, results_of
from waywiser.results import DEFAULT


def report(
    results: Annotated[
        Path, typer.Option("--results", metavar="DIR", help="Folder with profile.json and the rest.")
    ] = DEFAULT,
    machine: Recorded = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="DIR", help="Where to write; default: the folder itself.")
    ] = None,
    pictures: Annotated[bool, typer.Option(help="Write the plots as PNG, too.")] = True,
) -> None:
    """Write report.html and plots/*.png from results that are there already."""
    from waywiser.report.write import write_report

    found = results_of(results, machine)
    target = output or (results if machine is None else Path(f"{Path(machine).stem}-report"))
    typer.echo(str(write_report(found, target, pictures)))
