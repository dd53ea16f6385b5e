#!/usr/bin/env python3
"""How good tune() of a halo exchange chooses where processes share GPUs: halo_choices.py halo_shared.jsonl

Reads what `halo_gpu_benchmark shared` has measured, a line for each setting, and prints a table. A choice is as good as
its time is close to that of the fastest variant.
"""

from __future__ import annotations

import json
import statistics
import sys
from collections import Counter
from pathlib import Path
from typing import Any


def table(settings: list[dict[str, Any]]) -> str:
    """A row for each setting, then one for all."""
    lines = [
        "| MPS | processes a GPU | peer access | shapes | within 5 % | worst | chosen | fastest variants | "
        "`packed` takes |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for mps in sorted({setting["mps"] for setting in settings}):
        chosen = [setting for setting in settings if setting["mps"] == mps]
        for setting in chosen:
            lines.append(row("with" if mps else "without", setting, setting["tune"]["rows"]))
        whole = {"processes_per_gpu": "all", "peer_access": None}
        lines.append(row("with" if mps else "without", whole, [each for s in chosen for each in s["tune"]["rows"]]))
    return "\n".join(lines)


def row(mps: str, setting: dict[str, Any], shapes: list[dict[str, Any]]) -> str:
    ratios = [shape["ratio"] for shape in shapes]
    within = sum(ratio <= 1.05 for ratio in ratios) / len(ratios)
    packed = statistics.median(shape["all_us"]["packed"] / shape["best_us"] for shape in shapes)
    access = {True: "on", False: "off", None: "both"}[setting["peer_access"]]
    names = [
        ", ".join(f"`{name}` {count}" for name, count in Counter(shape[key] for shape in shapes).most_common())
        for key in ("chosen", "best")
    ]
    return (
        f"| {mps} | {setting['processes_per_gpu']} | {access} | {len(shapes)} | {within:.0%} | {max(ratios):.2f} | "
        f"{names[0]} | {names[1]} | {packed:.1f} times as long as the fastest |"
    )


def main() -> int:
    lines = Path(sys.argv[1]).read_text().splitlines() if len(sys.argv) == 2 else []
    settings = [json.loads(line) for line in lines if line.startswith("{")]
    if not settings:
        print("usage: halo_choices.py FILE, with a line of JSON of each setting", file=sys.stderr)
        return 2
    print(table(settings))
    if any(setting["backend"] != "cuda" for setting in settings):
        print("times of virtual GPUs, which say nothing about GPUs")
    wrong = [setting for setting in settings if not setting["all_verified"]]
    if wrong:
        print(f"{len(wrong)} settings had a wrong result", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
