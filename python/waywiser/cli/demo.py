"""`waywiser demo`: a recorded machine, one of its choices and its page, without any hardware."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from waywiser.cli.options import AsJson
from waywiser.plot_packages import why_no_plots
from waywiser.results import recorded

MACHINE = "recorded-4xh200"


def demo(
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="DIR", help="Where the page goes; default: MACHINE-report."),
    ] = None,
    open_: Annotated[bool, typer.Option("--open", help="Open the page in the browser.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show a recorded machine, one of its choices with the reasons, and write its page.

    Nothing is measured: it needs no hardware, and takes some seconds.
    """
    from waywiser.progress import say
    from waywiser.report.demonstration import demonstration, print_demonstration

    results = recorded(MACHINE)
    shown = demonstration(results)
    if not as_json:
        print_demonstration(results, shown)
    page = None
    if why := why_no_plots():
        say(f"no report: {why}")
    else:
        from waywiser.report.write import write_report

        say("writing the report")
        page = write_report(results, output or Path(f"{shown['machine']}-report"), pictures=False)
    if as_json:
        typer.echo(json.dumps({**shown, "report": str(page) if page else None}, indent=1))
    else:
        if page:
            typer.echo(f"report: {page}")
        typer.echo("on your machine, in a minute: waywiser tune --quick")
    if open_ and page:
        from waywiser.report.browser import open_page

        if why := open_page(page):
            say(f"not opened: {why}")
