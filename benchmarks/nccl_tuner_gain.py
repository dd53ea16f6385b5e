"""On a machine with two GPUs or more: five collectives of NCCL at 24 sizes, eager and in graphs, in turns: without a
plug-in, with the tuner and its plan, without again, with a plan made wrong on purpose, with a plan of another machine.

`python benchmarks/nccl_tuner_gain.py --results FOLDER [--ranks 2] [--modes stream,graph] [--minutes 8] > rows.json`;
FOLDER has the plan of `waywiser tune --nccl`. Figures for people go to standard error. Exit code 1: the tuner loses
somewhere, or decides nothing.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from waywiser.apply.nccl_tuner_switch import environment_for
from waywiser.bench.conduct import Case
from waywiser.bench.nccl_communicators import plan_of
from waywiser.bench.operations import OPERATIONS
from waywiser.bench.team import Team
from waywiser.bench.teams import Setup, python_ranks
from waywiser.run.clean_environment import clean_environment
from waywiser.tune.nccl_tuning import COLLECTIVES
from waywiser.tune.turns import take_turns, timed_point

# Not the sizes of `tune`.
SIZES = sorted([3 << bits for bits in range(5, 25)] + [5 << bits for bits in (10, 14, 18, 22)])
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


def timed(started: dict[str, Team], modes: list[str], until: float) -> list[dict[str, Any]]:
    cases = [Case(OPERATIONS[name], "gpu", size, mode) for size in SIZES for name in COLLECTIVES for mode in modes]
    rows, begin = [], time.monotonic()
    for done, case in enumerate(cases):
        share = begin + (until - begin) * (done + 1) / len(cases)
        found = take_turns(started, dict.fromkeys(started, case), share, ROUNDS)
        points = {name: timed_point(case, one) for name, one in found.items()}
        about = {"operation": case.operation.name, "bytes": case.bytes, "mode": case.mode}
        rows.append(
            {
                **about,
                "seconds": {name: [one[key] for key in ("seconds", "low", "high")] for name, one in points.items()},
            }
        )
        ratio = points[TUNED]["seconds"] / points[PLAIN]["seconds"]
        print(f"{case.operation.name:15} {case.bytes:>10} {case.mode:7} {ratio:.3f}", file=sys.stderr, flush=True)
    return rows


def mean(rows: list[dict[str, Any]], name: str) -> float:
    """Geometric, of the times divided by those without a plug-in."""
    logs = [math.log(row["seconds"][name][0] / row["seconds"][PLAIN][0]) for row in rows]
    return math.exp(sum(logs) / len(logs))


def is_worse(row: dict[str, Any]) -> bool:
    """By more than 5 % of both runs without a plug-in, with separate intervals."""
    seconds, low, _ = row["seconds"][TUNED]
    return all(seconds > WORSE * row["seconds"][name][0] and low > row["seconds"][name][2] for name in (PLAIN, AGAIN))


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--results", type=Path, required=True)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--modes", default="stream,graph")
    parser.add_argument("--minutes", type=float, default=8.0)
    asked = parser.parse_args()
    started: dict[str, Team] = {}
    with tempfile.TemporaryDirectory() as folder:
        try:
            started = teams(asked.results, asked.ranks, Path(folder))
            rows = timed(started, asked.modes.split(","), time.monotonic() + asked.minutes * 60)
        finally:
            for team in started.values():
                team.close()
    means = {name: round(mean(rows, name), 4) for name in (TUNED, AGAIN, WRONG, FOREIGN)}
    worse = [row for row in rows if is_worse(row)]
    good = means[TUNED] <= BETTER and not worse and means[WRONG] > means[TUNED]
    about = {"benchmark": "nccl_tuner_gain", "library": started[PLAIN].version, "ranks": asked.ranks, "means": means}
    print(json.dumps({**about, "worse": len(worse), "good": good, "rows": rows}, indent=1))
    print(
        f"geometric means of the ratio to no plug-in: {means}; {len(worse)} of {len(rows)} rows worse", file=sys.stderr
    )
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
