"""On a machine with two GPUs or more: five collectives of NCCL at 24 sizes, eager and in graphs, in turns: without a
plug-in, with the tuner and its plan, without again, with a plan made wrong on purpose, with a plan of another machine,
of which a tuner says nothing.

`python benchmarks/nccl_tuner_gain.py --results FOLDER --out FILE [--ranks 2] [--modes stream,graph] [--minutes 8]`;
FOLDER has the plan of `waywiser tune --nccl`. FILE is whole after each row, so that nothing is lost if the job is
stopped; `cases` is how many rows it gets in the end. Figures for people go to standard error. Exit code 1: the tuner
loses somewhere, or decides nothing.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from waywiser.apply.nccl_tuner_switch import environment_for
from waywiser.bench.conduct import Case
from waywiser.bench.nccl_communicators import plan_of
from waywiser.bench.operations import OPERATIONS
from waywiser.bench.team import Team
from waywiser.bench.teams import Setup, python_ranks
from waywiser.files import write_text_atomically
from waywiser.run.clean_environment import clean_environment
from waywiser.tune.nccl_tuning import COLLECTIVES
from waywiser.tune.turns import take_turns, timed_point

# Not the sizes of `tune`; small and large ones in turns, so that a job that is stopped has some of each.
_SORTED = sorted([3 << bits for bits in range(5, 25)] + [5 << bits for bits in (10, 14, 18, 22)])
SIZES = [_SORTED[at * 7 % len(_SORTED)] for at in range(len(_SORTED))]
PLAIN, TUNED, AGAIN, WRONG, FOREIGN = "no plug-in", "tuner", "no plug-in again", "wrong plan", "plan of another machine"
SLOW_WAY = "Ring(channels=1,protocol=LL)"
ROUNDS, WORSE, BETTER = 7, 1.05, 0.99


def teams(results: Path, ranks: int, folder: Path) -> dict[str, Team]:
    plan = (results / "plan.json").read_text()
    setup, clean = Setup(ranks, "cuda", 0, folder, folder), clean_environment(os.environ)
    started = {PLAIN: python_ranks(setup, "nccl", {**clean, "NCCL_TUNER_PLUGIN": "none"})}
    version = started[PLAIN].version.removeprefix("NCCL ")
    wrong = plan_of(SLOW_WAY, ranks, version)
    texts = {TUNED: plan, AGAIN: "", WRONG: wrong, FOREIGN: json.dumps(json.loads(wrong) | {"fingerprint": "f00"})}
    for number, (name, text) in enumerate(texts.items()):
        file = folder / f"plan-{number}.json"
        file.write_text(text)
        more = environment_for(text, file) if text else {"NCCL_TUNER_PLUGIN": "none"}
        started[name] = python_ranks(setup, f"nccl-{number}", {**clean, **more}, module="nccl")
    return started


def timed(started: dict[str, Team], cases: list[Case], until: float) -> Iterator[dict[str, Any]]:
    begin = time.monotonic()
    for done, case in enumerate(cases):
        share = begin + (until - begin) * (done + 1) / len(cases)
        found = take_turns(started, dict.fromkeys(started, case), share, ROUNDS)
        points = {name: timed_point(case, one) for name, one in found.items()}
        about = {"operation": case.operation.name, "bytes": case.bytes, "mode": case.mode}
        seconds = {name: [one[key] for key in ("seconds", "low", "high")] for name, one in points.items()}
        yield {**about, "seconds": seconds}
        ratios = " ".join(
            f"{points[name]['seconds'] / points[PLAIN]['seconds']:.3f}" for name in (TUNED, AGAIN, FOREIGN)
        )
        print(f"{case.operation.name:15} {case.bytes:>10} {case.mode:7} {ratios}", file=sys.stderr, flush=True)


def mean(rows: list[dict[str, Any]], name: str) -> float:
    """Geometric, of the times divided by those without a plug-in."""
    logs = [math.log(row["seconds"][name][0] / row["seconds"][PLAIN][0]) for row in rows]
    return math.exp(sum(logs) / len(logs))


def is_worse(row: dict[str, Any]) -> bool:
    """By more than 5 % of both runs without a plug-in, with separate intervals."""
    seconds, low, _ = row["seconds"][TUNED]
    return all(seconds > WORSE * row["seconds"][name][0] and low > row["seconds"][name][2] for name in (PLAIN, AGAIN))


def told(rows: list[dict[str, Any]], cases: int) -> dict[str, Any]:
    """What the rows so far say."""
    means = {name: round(mean(rows, name), 4) for name in (TUNED, AGAIN, WRONG, FOREIGN)}
    worse = sum(is_worse(row) for row in rows)
    good = means[TUNED] <= BETTER and not worse and means[WRONG] > means[TUNED]
    return {"means": means, "worse": worse, "good": good, "cases": cases, "rows": rows}


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--results", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--modes", default="stream,graph")
    parser.add_argument("--minutes", type=float, default=8.0)
    asked = parser.parse_args()
    modes = asked.modes.split(",")
    cases = [Case(OPERATIONS[name], "gpu", size, mode) for size in SIZES for name in COLLECTIVES for mode in modes]
    until = time.monotonic() + asked.minutes * 60
    started: dict[str, Team] = {}
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        try:
            started = teams(asked.results, asked.ranks, Path(folder))
            about = {"benchmark": "nccl_tuner_gain", "library": started[PLAIN].version, "ranks": asked.ranks}
            for row in timed(started, cases, until):
                rows.append(row)
                found = {**about, **told(rows, len(cases))}
                write_text_atomically(asked.out, json.dumps(found, indent=1) + "\n")
        finally:
            for team in started.values():
                team.close()
    worse = f"{found['worse']} of {len(rows)} rows worse"
    print(f"geometric means of the ratio to no plug-in: {found['means']}; {worse}", file=sys.stderr)
    return 0 if found["good"] else 1


if __name__ == "__main__":
    sys.exit(main())
