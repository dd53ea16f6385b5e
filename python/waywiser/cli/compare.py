"""`waywiser compare OLD NEW`: shows the differences between two profiles."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from waywiser.comparison import Comparison, compare_profiles
from waywiser.plan import Plan
from waywiser.profile import Profile
from waywiser.results import measured_at, recorded_machines


def compare(
    old: Annotated[str, typer.Argument(metavar="OLD", help="A profile, a folder of results, or a recorded machine.")],
    new: Annotated[str, typer.Argument(metavar="NEW", help="A later measurement of the same machine.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print the differences as JSON.")] = False,
) -> None:
    """Show differences beyond the confidence intervals: times, paths, choices, state of the machine."""
    from waywiser import terminal
    from waywiser.report.difference import difference

    before, old_plan = _load(old)
    now, new_plan = _load(new)
    found: Comparison = compare_profiles(before, now, old_plan, new_plan)
    if as_json:
        typer.echo(json.dumps(found.as_json(), indent=1))
    else:
        terminal.print_result(difference(found))


def _load(name: str) -> tuple[Profile, Plan | None]:
    """The profile, and the plan beside it if it has the same fingerprint."""
    results, profile = measured_at(name)
    beside = name in recorded_machines() or Path(name).is_dir() or results.file("profile") == Path(name)
    plan = results.plan if beside else None
    return profile, plan if plan and plan.fingerprint == profile.fingerprint else None
