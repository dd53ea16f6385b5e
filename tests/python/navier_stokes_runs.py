"""Runs of apps/navier_stokes, for tests."""

from __future__ import annotations

import json
import subprocess

from rank_jobs import ROOT, finish, start

PROGRAM = ROOT / "build/apps/navier_stokes"


def words(case: str, *options: object) -> list[str]:
    return [str(PROGRAM), "--case", case, "--progress", "no", *map(str, options)]


def begun(ranks: int, case: str, *options: object) -> subprocess.Popen[str]:
    """A single rank needs no launcher."""
    if ranks > 1:
        return start("run", "-n", str(ranks), *words(case, *options))
    return subprocess.Popen(words(case, *options), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def solve(ranks: int, case: str, *options: object) -> dict[str, object]:
    """The report of a run."""
    process = begun(ranks, case, *options)
    out, err = process.communicate(timeout=100)
    assert process.returncode == 0, err
    report = json.loads(out)
    assert isinstance(report, dict)
    return report


def number(report: dict[str, object], name: str) -> float:
    value = report[name]
    assert isinstance(value, (int, float))
    return float(value)


def refused(code: int, text: str, ranks: int, case: str, *options: object) -> None:
    got, _, err = finish(begun(ranks, case, *options))
    assert (got, text in err) == (code, True), err
    said = [line for line in err.splitlines() if line.startswith("navier_stokes: ")]
    assert len(said) == (1 if code == 2 else ranks)
