"""Figures that others published, of `figures.json`: the model is compared with them, and not fitted to them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from waywiser.simulator.answers import Answer
from waywiser.simulator.findings import Claim, Find

# What a figure of `figures.json` is: how it follows, and from the answer of its command.
_FIGURES: dict[str, tuple[str, Find]] = {
    "bus_bandwidth": ("bus bandwidth", Answer.bus_bandwidth),
    "between_nodes": ("bus bandwidth x 8 / 15", lambda told: told.bus_bandwidth() * 8 / 15),  # of 15 peers, 8 are there
    "time": ("", lambda told: told.seconds() * 1e6),
    "rate": ("", Answer.rate),
    "both": ("both directions", lambda told: 2 * told.rate()),
    "latency": ("", lambda told: told.only() * 1e6),
}


@cache
def _figures() -> dict[str, Any]:
    return dict(json.loads(Path(__file__).with_name("figures.json").read_text(encoding="utf-8")))


def figures_of_others() -> Iterator[Claim]:
    """Those of the table, in its order."""
    for row in _figures()["rows"]:
        published = row["published"]
        low, high = published if isinstance(published, list) else (published, published)
        how, find = _FIGURES[row["figure"]]
        command = (f"waywiser simulate {row['command']}",)
        source = _figures()["sources"][row["source"]]
        yield Claim(row["machine"], row["finding"], low, high, row["unit"], how, command, find, source=source)


def machine_commands(commands: Sequence[str]) -> list[str]:
    """What makes the machine files that these commands read, a line each."""
    text = " ".join(commands)
    made = _figures()["machines"].items()
    return [f"waywiser machine new {words} -o {name}.json" for name, words in made if f" {name}.json " in f"{text} "]
