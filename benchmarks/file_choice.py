#!/usr/bin/env python3
"""Whether the plan of `tune --storage` chooses well at sizes that it has not timed: each choice beside the way that
seems the fastest of all, in turns of their own. `file_choice.py FOLDER [--tune S] [--sizes N] [--json FILE]`.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from pathlib import Path

import numpy as np

from waywiser import _core
from waywiser.plan import PlanRow
from waywiser.tune.storage_tuning import CACHED, HOST, MANY, READ, WRITE, Turns, Why, keep, measured, processors, room_in, ways_of

LEAST, MOST = 4 << 10, 64 << 20
PARTS_MOST = 64 << 10
LOOKS, TURNS = 5, 21


def unseen(work: str, count: int, most: int) -> list[int]:
    """Sizes of whole KiB, as many in each factor of two."""
    draw = np.random.default_rng(sum(work.encode()))
    top = min(PARTS_MOST if work == MANY else MOST, most)
    return [int(size) // 1024 * 1024 for size in np.exp(draw.uniform(np.log(LEAST), np.log(top), count))]


def times(turns: Turns, work: str, size: int, ways: list[str], count: int) -> dict[str, list[float]]:
    """Of turns that are interleaved, each time in another order."""
    found: dict[str, list[float]] = {way: [] for way in ways}
    for turn in range(count):
        for at in range(len(ways)):
            way = ways[(at + turn) % len(ways)]
            found[way].append(turns.take(HOST, work, way, size))
    return found


def judged(turns: Turns, rows: list[PlanRow], why: Why, work: str, size: int) -> dict[str, object]:
    """The choice's time, over that of the way that seems the fastest of the others; 1 if that is itself."""
    (row,) = (
        row for row in rows if (row.memory, row.operation) == (HOST, work) and row.from_bytes <= size <= row.to_bytes
    )
    first = times(turns, work, size, ways_of(HOST, work, size, why, processors()), LOOKS)
    others = {way: statistics.median(of) for way, of in first.items() if way != row.way}
    rival = min(others, key=lambda way: others[way])
    second = times(turns, work, size, [row.way, rival], TURNS)
    ratio = statistics.median(second[row.way]) / statistics.median(second[rival])
    return {"work": work, "bytes": size, "way": row.way, "rival": rival, "ratio": ratio}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--tune", type=float, default=60, help="seconds of tune --storage")
    parser.add_argument("--sizes", type=int, default=10, help="of each kind of work")
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    found = measured(asked.folder, asked.tune, lambda *_: None)
    with tempfile.TemporaryDirectory(prefix="waywiser-choice-", dir=asked.folder) as inside:
        rows = keep(Path(inside) / "plan.json", found)
        turns = Turns(Path(inside), room_in(asked.folder))
        why: Why = {name: (end, read, write) for name, end, read, write in _core.storage_mechanisms(turns.path)}
        works = [work for work in (READ, CACHED, MANY, WRITE) if any(row.operation == work for row in rows)]
        cases = [(work, size) for work in works for size in unseen(work, asked.sizes, room_in(asked.folder) // 2)]
        answers: list[dict[str, object]] = []
        for work, size in cases:
            one = judged(turns, rows, why, work, size)
            print(f"{work:<17}{size:>9}  {one['ratio']:.3f}  {one['way']} beside {one['rival']}", flush=True)
            answers.append(one)
    near = sum(float(str(one["ratio"])) <= 1.05 for one in answers)
    print(f"{near} of {len(answers)} choices are within 5 % of the fastest way: {found.storage}")
    if asked.json:
        asked.json.write_text(json.dumps({"storage": found.storage, "cases": answers}, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
