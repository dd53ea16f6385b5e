"""`waywiser plan`: chooses a path for each size from the profile."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from waywiser.cli.options import Recorded, ResultsFolder
from waywiser.results import DEFAULT, Results, load_profile, read_document


def plan(
    output: ResultsFolder = DEFAULT,
    profile: Annotated[
        Path | None, typer.Option("--profile", metavar="FILE", help="The profile to choose from.")
    ] = None,
    machine: Recorded = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the plan as JSON.")] = False,
) -> None:
    """Choose the fastest path for each pair, operation and size; writes plan.json."""
    from waywiser import stages, terminal
    from waywiser.plan import read_plan
    from waywiser.progress import say
    from waywiser.report.plan_table import plan_table
    from waywiser.tune.machine_results import results_of

    results = results_of(output, machine)
    if profile is not None:
        measured, text = load_profile(profile), read_document(profile).decode("utf-8", "replace")
    else:
        measured, text = results.needed_profile(), results.needed_profile_text()
    answer = stages.choose(text)
    chosen = read_plan(answer.encode("utf-8"), "the core's plan")
    if machine is None:
        target = Results(output)
        target.make_writable()
        say(f"plan written to {target.write_plan(answer)}")
    if as_json:
        typer.echo(answer)
        return
    if measured.warning():
        terminal.print_result(measured.warning().upper())
    terminal.print_result(plan_table(measured, chosen))
