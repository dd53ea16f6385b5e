"""`waywiser report`: draws the page and the pictures again from the files of the results."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from waywiser.cli.options import AsJson, Recorded
from waywiser.errors import InputError
from waywiser.plot_packages import need_plots
from waywiser.results import DEFAULT, Results

if TYPE_CHECKING:
    pass


def report(
    context: typer.Context,
    results: Annotated[
        Path,
        typer.Option(
            "--results", "-r", envvar="WAYWISER_RESULTS", metavar="DIR", help="Folder of results, with profile.json."
        ),
    ] = DEFAULT,
    machine: Recorded = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="DIR", help="Where to write; default: the folder itself.")
    ] = None,
    pictures: Annotated[bool, typer.Option(help="Also write the plots as PNG.")] = True,
    savings: Annotated[
        Path | None, typer.Option(metavar="JOBS.csv", help="Also estimate the saved GPU-hours (sacct export).")
    ] = None,
    share: Annotated[
        float, typer.Option(metavar="SHARE", min=0.0, max=1.0, help="Share of communication time, if unknown.")
    ] = 0.2,
    gain: Annotated[
        list[str] | None, typer.Option(metavar="TYPE=1.2", help="Gain of a node type without verification.")
    ] = None,
    node_type: Annotated[
        str, typer.Option(metavar="TYPE", help="This machine's type in the table of jobs; default: its name.")
    ] = "",
    today: Annotated[
        str, typer.Option(metavar="'NAME=VALUE ...'", help="Settings of UCX that the site has today; default: none.")
    ] = "",
    messages: Annotated[
        str, typer.Option(metavar="SIZE=COUNT,...", help="What the jobs send between nodes; default: all sizes alike.")
    ] = "",
    as_json: AsJson = False,
) -> None:
    """Write report.html and plots/*.png from existing results.

    With --savings, print the GPU-hours per year that the settings save, and show them on the page.
    """
    from waywiser.tune.machine_results import results_of

    found = results_of(results, machine)
    source = context.get_parameter_source("results")
    is_named = source is not None and source.name == "COMMANDLINE"  # not by the environment, for all verbs
    page = _page_folder(found, results, machine, is_named)
    jobs = None
    answer: dict[str, Any] = {"report": None, "savings": None}
    if savings is not None:
        from waywiser.prove.site_use import SiteUse, messages_told, today_told
        from waywiser.report.settings_worth import job_table

        site = SiteUse(today_told(today), messages_told(messages))
        jobs, saved = job_table(found, savings, share, gain or [], node_type, site)
        if as_json:
            from waywiser.prove.savings_table import savings_as_dict

            answer["savings"] = savings_as_dict(jobs.jobs, saved, share, site)
        else:
            from waywiser.prove.savings_table import print_savings

            print_savings(jobs.jobs, saved, share, site)
    if savings is None or found.file("profile") is not None:  # a folder with evidence alone has no page
        need_plots("no report")
        from waywiser.report.write import write_report

        answer["report"] = str(write_report(found, output or page, pictures, jobs))
        if not as_json:
            typer.echo(answer["report"])
    if as_json:
        typer.echo(json.dumps(answer, indent=1))


def _page_folder(found: Results, results: Path, machine: str | None, is_named: bool) -> Path:
    """Where the page goes without --output. Raises InputError for a folder that has another machine's results."""
    if machine is None:
        return results
    if not is_named:
        return Path(f"{Path(machine).stem}-report")
    if found.folder != results and Results(results).file("profile") is not None:
        why = f"--results {results}: not the results of machine {machine}"
        raise InputError(f"{why}: leave it out; --output says where the page goes")
    return results
