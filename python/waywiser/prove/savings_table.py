"""Savings for the terminal, with every assumption."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Group
from rich.text import Text

from waywiser.prove.gains import ASSUMED, PREDICTED
from waywiser.prove.savings import Job, Saving, covered, seconds_of
from waywiser.prove.site_use import SiteUse
from waywiser.terminal import add, print_result, table

_PUBLISHED = "published by a centre, to compare: 3 % of all GPU jobs, 37,000 GPU-hours a year (docs/experiments.md)"


def print_savings(jobs: Sequence[Job], found: Sequence[Saving], share: float, site: SiteUse) -> None:
    """A line for each node type, the sum, and the assumptions."""
    days = seconds_of(jobs) / 86400
    made = table("node type", "jobs on", ">GPU-hours", ">gain", ">saved", ">saved a year")
    for one in found:
        year = f"{one.saved_a_year:,.0f}" if days else "-"
        where = ("several nodes" if one.several else "one node") + (f", {one.program}" if one.program else "")
        gain = one.gain.text if one.gain else "not known"
        add(made, one.node_type, where, f"{one.gpu_hours:,.0f}", gain, f"{one.saved:,.0f}", year)
    lines = assumptions(jobs, found, share, site)
    if days:
        lines.insert(
            0, f"{sum(one.saved_a_year for one in found):,.0f} GPU-hours a year, if the year is like these days"
        )
    print_result(Group(made, Text(), *(Text(line) for line in [*lines, _PUBLISHED])))


def savings_as_dict(jobs: Sequence[Job], found: Sequence[Saving], share: float, site: SiteUse) -> dict[str, Any]:
    """The same as an object: GPU-hours for each node type, and the assumptions as texts."""
    rows = [
        {"node_type": one.node_type, "several_nodes": one.several, "jobs": one.jobs, "gpu_hours": one.gpu_hours,
         "communication": one.communication, "gain": one.gain.factor if one.gain else None,
         "program": one.program, "basis": one.gain.basis if one.gain else None, "saved": one.saved,
         "saved_a_year": one.saved_a_year}
        for one in found
    ]  # fmt: skip
    return {"rows": rows, "assumptions": assumptions(jobs, found, share, site)}


def assumptions(jobs: Sequence[Job], found: Sequence[Saving], share: float, site: SiteUse) -> list[str]:
    """The assumptions, one per line."""
    days = seconds_of(jobs) / 86400
    told = sum(job.share is not None for job in jobs)
    count = f"{len(jobs)} job{'' if len(jobs) == 1 else 's'}"
    without = ": the jobs cover less than a day" if covered(jobs) else " without Start and End"
    lines = [
        f"{count} over {days:.1f} days: {sum(job.gpu_hours for job in jobs) / days / 24:,.0f} GPUs in use all the time"
        if days
        else f"{count}; no figures per year{without}",
        "saved = GPU-hours x share of communication x (1 - 1 / gain); communication is not hidden behind computing",
        f"share of communication: known for {told} of {len(jobs)} jobs, {100 * share:.0f} % assumed for the others",
        "gain: mean over the verified cases; a job that sends other sizes gains more or less",
        *site.lines(),
    ]
    if any(one.program for one in found):
        lines.append("jobs of a program that verify has compared as a whole: saved = GPU-hours x (1 - 1 / its gain)")
    bases = {one.gain.basis for one in found if one.gain}
    if ASSUMED in bases:
        lines.append("gain marked assumed: taken from the only verified machine, which is another node type")
    if PREDICTED in bases:
        lines.append("gain marked prediction: between GPUs of two simulated nodes, not a measurement")
    if any(one.gain is None for one in found):
        lines.append(
            "gain not known: no savings counted; waywiser verify measures the gain, between nodes with --hosts"
        )
    return lines
