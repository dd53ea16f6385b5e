"""A plan as tables for the terminal."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.text import Text

from waywiser.plan import Plan
from waywiser.profile import PairClass, Profile, pair_text
from waywiser.report.choices import choices
from waywiser.terminal import add, console, group_name, operation_name, spaced, table
from waywiser.units import format_percent, format_range, format_rate, format_seconds


def plan_table(profile: Profile | None, plan: Plan) -> RenderableType:
    """Every choice: sizes, path, time at the smallest and bandwidth at the largest size, share of the limit, reason."""
    wide = console().width >= 120
    parts: list[RenderableType] = []
    last, made = ("", ""), table("")
    known = profile or _bare(plan)
    for choice in choices(known, plan):
        name = (group_name(choice.group), choice.operation)
        if name != last:
            made = table("!sizes", "path", ">time", ">bandwidth", ">limit", ">next best", *(["why"] if wide else []))
            title = operation_name(known, choice.group, choice.operation)
            parts += [Text(f"{name[0]}, {title}", "bold"), made, Text()]
        last = name
        cells = [
            format_range(choice.from_bytes, choice.to_bytes),
            spaced(choice.path.label),
            format_seconds(choice.first_seconds) if choice.first_seconds else "-",
            format_rate(choice.rate) if choice.rate else "-",
            format_percent(choice.percent) if choice.percent is not None else "-",
            f"{choice.runner_up.ratio:.2f} x" if choice.runner_up else "-",
        ]
        add(made, *cells, *([choice.why] if wide else []))
    return Group(*parts[:-1]) if parts else Text("no choices: nothing was measured")


def _bare(plan: Plan) -> Profile:
    """A profile without figures, so that a plan can be shown alone."""
    groups = dict.fromkeys((row.pairs, row.processes) for row in plan.messages())
    named = tuple(PairClass(pair_text(pairs[0], processes), pairs, processes) for pairs, processes in groups)
    return Profile(plan.fingerprint, plan.machine, plan.backend, plan.simulated, "", {}, named, ())
