"""Savings for the terminal, with every assumption."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.console import Group
from rich.text import Text

from waywiser.apply.savings import Job, Saving, seconds_of
from waywiser.report.terminal import add, print_result, table


def print_savings(jobs: Sequence[Job], found: Sequence[Saving], gains: Mapping[str, float], share: float) -> None:
    """A line for each node type, the sum, and what was assumed."""
    days = seconds_of(jobs) / 86400
    made = table("node type", ">GPU-hours", ">gain", ">saved", ">saved a year")
    for one in found:
        mark = "" if one.node_type in gains else " assumed"
        year = f"{one.saved_a_year:,.0f}" if days else "-"
        add(made, one.node_type, f"{one.gpu_hours:,.0f}", f"{one.gain:.2f} x{mark}", f"{one.saved:,.0f}", year)
    total = sum(one.saved_a_year for one in found)
    told = sum(job.share is not None for job in jobs)
    count = f"{len(jobs)} job{'' if len(jobs) == 1 else 's'}"
    lines = [
        f"{count} over {days:.1f} days" if days else f"{count}; without Start and End no year",
        "saved = GPU-hours x share of communication x (1 - 1 / gain); communication is not hidden behind computing",
        f"share of communication: told for {told} of {len(jobs)} jobs, {100 * share:.0f} % assumed for the others",
        "gain: mean over the cases that were verified; a job that sends other sizes gains more or less",
    ]
    if any(one.node_type not in gains and one.gain > 1 for one in found):
        lines.append("gain marked assumed: that of the one machine that was verified, which is another node type")
    if days:
        lines.insert(0, f"{total:,.0f} GPU-hours a year, if the year is like these days")
    print_result(Group(made, Text(), *(Text(line) for line in lines)))
