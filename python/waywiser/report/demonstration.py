"""What `waywiser demo` shows of a recorded machine: its devices, one choice with its reasons."""

from __future__ import annotations

import json
from typing import Any

from rich.text import Text

from waywiser import _core, stages
from waywiser.profile import pair_text
from waywiser.report.actions import where
from waywiser.report.explanation import explain_table
from waywiser.report.found import finding, size_word
from waywiser.report.headline import headline
from waywiser.report.topology_text import legend, print_topology
from waywiser.results import Results
from waywiser.terminal import print_result
from waywiser.units import format_bytes


def demonstration(results: Results) -> dict[str, Any]:
    """The machine and the date of its measurements, what the plan found, and the answer of `explain` to it."""
    profile, one = results.needed_profile(), finding(results)
    shown = {
        "machine": results.folder.name,
        "headline": headline(results.topology, profile.machine),
        "recorded": profile.created,
    }
    if one is None:
        return {**shown, "found": None, "choice": None}
    texts = results.needed_profile_text(), results.text("plan") or ""
    answer = stages.explain(*texts, *one.pair, 1, "latency", one.size)
    return {**shown, "found": one.text, "choice": {**answer, "pair": pair_text(one.pair)}}


def print_demonstration(results: Results, shown: dict[str, Any]) -> None:
    """The same for people, each part with the command that shows it alone."""
    at, date = where(results), shown["recorded"].partition("T")[0]
    label = f"RECORDED on {date}, not measured here: {shown['headline']}"
    print_result(Text(f"{label}\n\nThe machine: waywiser topology{at}", "bold"))
    topology = _core.Topology.from_json(json.dumps(results.topology), "topology.json")
    print_topology(topology)
    print_result(Text(f"{legend(topology)}\n", "dim"))
    answer = shown["choice"]
    if answer is None:
        return
    source, destination = answer["pair"].split(">")
    command = f"waywiser explain {source} {destination} {size_word(answer['bytes'])}{at}"
    print_result(Text.assemble((f"One of its choices: {command}\n", "bold"), f"{shown['found']}.\n"))
    head = f"{source} to {destination}, {format_bytes(answer['bytes'])}, latency, recorded on {date}"
    print_result(explain_table(answer, head))
    names = dict.fromkeys(one["label"].partition("(")[0] for one in answer["candidates"])
    summaries = _core.mechanisms()
    print_result(Text("\n".join(f"{name}: {summaries[name]}" for name in names if name in summaries) + "\n", "dim"))
