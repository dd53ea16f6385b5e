"""What `waywiser network prove` prints: a table for the terminal, or JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from waywiser.network.proving import Proof
from waywiser.network.shown import print_result_of, where
from waywiser.network.steering import Steering
from waywiser.terminal import add, table

SCHEMA, VERSION = "waywiser.network_proof", 1
_STYLES = {"hardware": "green", "software": "yellow", "unknown": "magenta"}


def print_proofs(steering: Steering, proofs: Sequence[Proof], live: bool) -> None:
    """Prints the counters and a verdict for each rule."""
    title = "By hardware?" if live else f"By hardware? Recorded at {steering.host or 'a machine without a name'}"
    heads = ("rule", "said", "sent from", ">sent", ">card", ">kernel", ">arrived", ">processors", "goes by")
    made = table(*heads, title=title)
    parts: list[RenderableType] = [made, Text()] if proofs else [Text("no rule: nothing to prove")]
    for one in proofs:
        of = one.counted
        seen = "-" if of is None or of.processors is None else str(of.processors)
        counts = (of.sent, of.hardware, of.software, of.arrived) if of else ("-",) * 4
        add(made, one.rule.name, where(one.rule), one.sender or "-", *map(str, counts), seen, one.verdict)
        line = Text(f"{one.rule.name}: ").append(one.verdict, _STYLES.get(one.verdict, "bold red"))
        parts.append(line.append(f": {one.why}", "default"))
    parts += [Text(f"unknown: {subject}: {why}", "magenta") for subject, why in steering.unknown if not proofs]
    print_result_of(parts)


def proofs_json(steering: Steering, proofs: Sequence[Proof], live: bool) -> str:
    """The same as a JSON document."""
    value: dict[str, Any] = {
        "schema": SCHEMA,
        "version": VERSION,
        "host": steering.host,
        "kernel": steering.kernel,
        "recorded": not live,
        "proofs": [_proof(one) for one in proofs],
        "unknown": [{"what": subject, "why": why} for subject, why in steering.unknown],
    }
    return json.dumps(value, indent=1)


def _proof(one: Proof) -> dict[str, Any]:
    rule = {"rule": one.rule.name, "interface": one.rule.interface, "where": where(one.rule)}
    counted = (
        None if one.counted is None else {key: value for key, value in vars(one.counted).items() if key != "first"}
    )
    return {**rule, "sender": one.sender, "counted": counted, "verdict": one.verdict, "why": one.why}
