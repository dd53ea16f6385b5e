"""The table of a paper: time of a step and the exchange's share of it, for each variant, by cells and ranks."""

from __future__ import annotations

import csv
from pathlib import Path

from program import RunError, run

VARIANTS = [
    "whole_field",
    "per_neighbor",
    "packed",
    "direct",
    "strided",
    "gpu_aware",
    "auto",
]
COLUMNS = ["cells", "ranks", "exchange", "ms a step", "exchange %", "sums %", "KiB an exchange", "messages", "chosen"]


def parsed_cells(text: str) -> int:
    """ "0.5M" -> 500000."""
    factor = {"k": 1_000, "M": 1_000_000}.get(text[-1:], 1)
    return round(float(text.rstrip("kM")) * factor)


def measured(program: Path, cells: int, ranks: int, variant: str, steps: int) -> dict[str, object]:
    """One row; a variant that these ranks cannot use has no figures."""
    row: dict[str, object] = {"cells": cells, "ranks": ranks, "exchange": variant}
    try:
        report = run(
            program, ranks, case="bend", cells=cells, steps=steps, exchange=variant, progress="no", record=steps
        )
    except RunError:
        return row
    row["cells"] = report["cells"]
    row["ms a step"] = f"{1e3 * float(report['median_seconds_per_step']):.1f}"
    row["exchange %"] = f"{100 * float(report['exchange_share']):.1f}"
    row["sums %"] = f"{100 * float(report['reduction_share']):.1f}"
    row["KiB an exchange"] = f"{float(report['bytes_per_exchange_and_rank']) / 1024:.1f}"
    row["messages"] = f"{float(report['messages_per_exchange_and_rank']):.1f}"
    row["chosen"] = report["variants"]
    return row


def markdown(rows: list[dict[str, object]]) -> str:
    """The rows as a table of Markdown."""
    lines = ["| " + " | ".join(COLUMNS) + " |", "|" + "---|" * len(COLUMNS)]
    lines += ["| " + " | ".join(str(row.get(column, "-")) for column in COLUMNS) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def table(program: Path, cells: list[int], ranks: list[int], steps: int, variants: list[str], folder: Path) -> str:
    """Runs all combinations; rows are kept in `folder`/table.csv as they come. Returns Markdown."""
    folder.mkdir(parents=True, exist_ok=True)
    rows: list[dict[str, object]] = []
    with (folder / "table.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        for each in cells:
            for count in ranks:
                for variant in variants if count > 1 else ["packed"]:
                    rows.append(measured(program, each, count, variant, steps))
                    writer.writerow(rows[-1])
                    file.flush()
    text = markdown(rows)
    (folder / "table.md").write_text(text)
    return text
