"""apps/navier_stokes: a run ends at the time that was asked for, and its pressure is that of this time."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from rank_jobs import ROOT, runtime_folder

sys.path.insert(0, str(ROOT / "apps/navier_stokes"))
from vtu import last_frame

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


def pressure_error(folder: Path, time: float) -> float:
    """Beside the exact one of the vortices, both without their means."""
    frame = last_frame(folder)
    x, y = (frame.centers()[:, i] - time * speed for i, speed in ((0, 1), (1, 0.5)))
    exact = -0.25 * (np.cos(2 * x) + np.cos(2 * y)) * np.exp(-0.4 * time)
    apart = frame.pressure - frame.pressure.mean() - exact + exact.mean()
    return float(np.sqrt((apart**2).mean()))


@pytest.mark.parametrize("options", [(), ("--step", 0.05)])
def test_the_pressure_is_that_of_the_time_of_its_frame(options: tuple[object, ...], tmp_path: Path) -> None:
    """Of second order. That of the middle of the step, half a step before, was of first order."""
    errors = []
    for cells in (1024, 4096):
        step = [each / (1 if cells == 1024 else 2) if isinstance(each, float) else each for each in options]
        solve("--cells", cells, "--time", 0.5, *step, "--output", tmp_path / str(cells))
        errors.append(pressure_error(tmp_path / str(cells), 0.5))
    assert 3.5 < errors[0] / errors[1] < 4.6


def test_a_run_goes_on_with_steps_of_another_length(tmp_path: Path) -> None:
    """The second order is kept where the length changes."""
    errors = []
    for step in (0.04, 0.02):
        options = ["--cells", 4096, "--output", tmp_path / str(step), "--checkpoint", 1, "--tolerance", 1e-10]
        solve(*options, "--step", step, "--time", 0.4)
        solve(*options, "--step", step / 2, "--time", 0.8, "--resume", "yes")
        solve("--cells", 4096, "--step", 0.0025, "--time", 0.8, "--output", tmp_path / "fine", "--tolerance", 1e-10)
        velocity = [last_frame(tmp_path / each).velocity for each in (str(step), "fine")]
        errors.append(float(np.sqrt(((velocity[0] - velocity[1]) ** 2).mean())))
    assert 3.3 < errors[0] / errors[1] < 5
