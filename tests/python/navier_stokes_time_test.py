"""apps/navier_stokes: a run ends at the time that was asked for."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from rank_jobs import ROOT, runtime_folder

__all__ = ["runtime_folder"]
pytestmark = pytest.mark.slow
PROGRAM = ROOT / "build/apps/navier_stokes"


def solve(*options: object) -> dict[str, float]:
    """The report of a run by one rank."""
    words = [str(PROGRAM), "--case", "taylor_green", "--progress", "no", "--cells", "256", *map(str, options)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=100, check=True)
    report: dict[str, float] = json.loads(done.stdout)
    return report


@pytest.mark.parametrize(
    ("options", "time", "steps"),
    [
        (("--courant", 0.5), 0.5, None),
        (("--courant", 0.3), 0.37, None),
        (("--step", 0.1), 0.37, 4),
        (("--step", 0.1), 0.5, 5),
        (("--step", 2.0), 0.5, 1),
    ],
)
def test_the_last_step_ends_at_the_time(options: tuple[object, ...], time: float, steps: int | None) -> None:
    report = solve("--time", time, *options)
    assert report["time"] == time
    assert report["time_step"] * report["steps"] == pytest.approx(time, rel=1e-8)
    assert steps is None or report["steps"] == steps


def test_a_run_goes_on_to_its_time_and_beyond_it(tmp_path: Path) -> None:
    options = ["--step", 0.06, "--output", tmp_path, "--checkpoint", 1, "--resume", "yes"]
    first = solve(*options, "--time", 0.5)
    again = solve(*options, "--time", 0.5)
    assert (first["time"], again["time"]) == (0.5, 0.5)
    assert again["first_step"] == first["steps"]
    longer = solve(*options, "--time", 0.8)
    assert 0.8 <= longer["time"] < 0.8 + longer["time_step"]
