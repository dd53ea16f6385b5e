"""Figures of files of `benchmarks/results`, as pages quote them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks/results"


def read(name: str) -> Any:
    """A file of results; one with an object a line as a list of these."""
    text = (RESULTS / name).read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()] if name.endswith(".jsonl") else json.loads(text)


def value(name: str, *way: str | dict[str, Any]) -> float:
    """The number at the end of a way into a file: names of fields, and of a list the fields of its only such part."""
    there = read(name)
    for step in way:
        if isinstance(step, str):
            there = there[step]
        else:
            (there,) = [each for each in there if step.items() <= each.items()]
    return float(there)


def text(number: float) -> str:
    """With three digits, or all of those before the point, as the tables have it."""
    return f"{number:.3g}" if abs(number) < 1000 else f"{number:.0f}"


def cells(line: str) -> list[str]:
    """The cells of a line of a Markdown table."""
    return [cell.strip() for cell in line.strip().strip("|").split("|")]
