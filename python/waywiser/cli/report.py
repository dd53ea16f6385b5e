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
    savings: Annotated[
        Path | None, typer.Option(metavar="JOBS.csv", help="Instead: what verified gains are worth (sacct export).")
    ] = None,
    share: Annotated[float, typer.Option(min=0.0, max=1.0, help="Share of communication where none is told.")] = 0.2,
    gain: Annotated[
        list[str] | None, typer.Option(metavar="TYPE=1.2", help="Gain of a node type that was not verified.")
    ] = None,
) -> None:
    """Write report.html and plots/*.png from results that are there already."""
    if savings is not None:
        _print_savings(results, savings, share, gain or [])
        return
    from waywiser.report.write import write_report

    found = results_of(results, machine)
    target = output or (results if machine is None else Path(f"{Path(machine).stem}-report"))
    typer.echo(str(write_report(found, target, pictures)))


def _print_savings(results: Path, file: Path, share: float, told: list[str]) -> None:
    from waywiser.apply.evidence import measured_gains
    from waywiser.apply.savings import gains_of, read_jobs, savings
    from waywiser.apply.savings_table import print_savings
    from waywiser.files import read_bytes

    jobs = read_jobs(read_bytes(file).decode("utf-8", "replace"), str(file))
    measured = measured_gains(results)
    gains = {**measured, **gains_of(told)}
    default = next(iter(measured.values())) if len(measured) == 1 else 1.0
    print_savings(jobs, savings(jobs, gains, share, default), gains, share)
