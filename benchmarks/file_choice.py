#!/usr/bin/env python3
"""Whether the plan of `tune --storage` chooses well at sizes that it has not timed: each choice beside the way that
seems the fastest of all, in pairs of their own. What is slower by more than 5 % is judged again at the end, beside the
way that seems the fastest then: if it is slower both times, beyond both intervals, the choice is wrong and no
other job explains it. `file_choice.py FOLDER [--tune S] [--sizes N] [--seconds S] [--json FILE]`.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from waywiser import _core
from waywiser.plan import PlanRow
from waywiser.tune.storage_tuning import Turns, keep, measured, room_in
from waywiser.tune.storage_ways import CACHED, HOST, MANY, READ, WRITE, Why, processors, ways_of

LEAST, MOST = 4 << 10, 64 << 20
PARTS_MOST = 64 << 10
LOOKS, LEAST_PAIRS, LIMIT = 7, 16, 1.05


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


def paired(turns: Turns, work: str, size: int, way: str, rival: str, seconds: float) -> dict[str, float | int]:
    """The median of the ratios of pairs next to each other, its 95 % interval and their number: until it is clear on
    which side of 5 % it lies, or the time is over. `same`: the median of as many pairs (less one) of one way twice, the
    later turn over the one before, which lie between those: what noise alone makes of the ratio."""
    until, ratios, same = time.monotonic() + seconds, list[float](), list[float]()
    before = 0.0
    while True:
        for order in ((way, rival), (rival, way)):
            took = {each: turns.take(HOST, work, each, size) for each in order}
            ratios.append(took[way] / took[rival])
            if before:  # of the same way
                same.append(took[order[0]] / before)
            before = took[order[1]]
        ratios.sort()
        half = math.ceil(0.98 * math.sqrt(len(ratios)))  # of the ranks of a median
        middle = len(ratios) // 2
        low, high = ratios[max(0, middle - half)], ratios[min(len(ratios) - 1, middle + half)]
        clear = len(ratios) >= LEAST_PAIRS and not low <= LIMIT < high
        if clear or time.monotonic() > until:
            return {
                "ratio": statistics.median(ratios), "low": low, "high": high, "pairs": len(ratios),
                "same": statistics.median(same),
            }  # fmt: skip


def judged(turns: Turns, rows: list[PlanRow], why: Why, case: tuple[str, int], seconds: float) -> dict[str, object]:
    """The choice beside the way that seems the fastest of the others in turns before."""
    work, size = case
    (row,) = (
        row for row in rows if (row.memory, row.operation) == (HOST, work) and row.from_bytes <= size <= row.to_bytes
    )
    first = times(turns, work, size, ways_of(HOST, work, size, why, processors()), LOOKS)
    others = {way: statistics.median(of) for way, of in first.items() if way != row.way}
    rival = min(others, key=lambda way: others[way])
    found = paired(turns, work, size, row.way, rival, seconds)
    interval = f"{found['low']:.2f} to {found['high']:.2f}, {found['pairs']} pairs, one way twice {found['same']:.3f}"
    print(f"{work:<17}{size:>9}  {found['ratio']:.3f} ({interval})  {row.way} beside {rival}", flush=True)
    return {"work": work, "bytes": size, "way": row.way, "rival": rival, **found}


def number(one: object, name: str) -> float:
    return float(one[name]) if isinstance(one, dict) else math.nan


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--tune", type=float, default=60, help="seconds of tune --storage")
    parser.add_argument("--sizes", type=int, default=10, help="of each kind of work")
    parser.add_argument("--seconds", type=float, default=3, help="for the pairs of a case, at most")
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    found = measured(asked.folder, asked.tune, lambda *_: None)
    with tempfile.TemporaryDirectory(prefix="waywiser-choice-", dir=asked.folder) as inside:
        rows = keep(Path(inside) / "plan.json", found)
        turns = Turns(Path(inside), room_in(asked.folder))
        why: Why = {name: (end, read, write) for name, end, read, write in _core.storage_mechanisms(turns.path)}
        works = [work for work in (READ, CACHED, MANY, WRITE) if any(row.operation == work for row in rows)]
        cases = [(work, size) for work in works for size in unseen(work, asked.sizes, room_in(asked.folder) // 2)]
        answers = [judged(turns, rows, why, case, asked.seconds) for case in cases]
        print("again:")
        for one, case in zip(answers, cases, strict=True):
            if number(one, "ratio") > LIMIT:
                one["again"] = judged(turns, rows, why, case, asked.seconds)
    near = sum(number(one, "ratio") <= LIMIT for one in answers)
    noise = sum(number(one, "same") > LIMIT for one in answers)
    clear = sum(number(one, "low") > LIMIT for one in answers)
    wrong = sum(all(number(each, "low") > LIMIT for each in (one, one.get("again", {"low": 0}))) for one in answers)
    print(f"{near} of {len(answers)} choices are within 5 % of the fastest way: {found.storage}")
    print(
        f"{clear} are slower by more, beyond the interval; {noise} times one way twice differs as much by noise alone"
    )
    print(f"{wrong} are slower by more, twice and beyond both intervals")
    if asked.json:
        chosen = [[row.operation, row.from_bytes, row.way, row.why] for row in rows]
        file_system = " ".join(found.storage.split(" ", 2)[:2])  # not where it is mounted
        text = json.dumps({"storage": file_system, "plan": chosen, "cases": answers}, indent=1)
        asked.json.write_text(text + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
