"""apps/navier_stokes: a run ends at the time that was asked for."""

from __future__ import annotations

from pathlib import Path

import pytest
from navier_stokes_test import number, solve
from rank_jobs import runtime_folder

__all__ = ["runtime_folder"]
pytestmark = pytest.mark.slow


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
    report = solve(1, "taylor_green", "--cells", 256, "--time", time, *options)
    assert number(report, "time") == time
    assert number(report, "time_step") * number(report, "steps") == pytest.approx(time, rel=1e-8)
    assert steps is None or number(report, "steps") == steps


def test_a_run_goes_on_to_its_time_and_beyond_it(tmp_path: Path) -> None:
    options = ["--cells", 256, "--step", 0.06, "--output", tmp_path, "--checkpoint", 1, "--resume", "yes"]
    first = solve(1, "taylor_green", *options, "--time", 0.5)
    again = solve(1, "taylor_green", *options, "--time", 0.5)
    assert (number(first, "time"), number(again, "time")) == (0.5, 0.5)
    assert number(again, "first_step") == number(first, "steps")
    longer = solve(1, "taylor_green", *options, "--time", 0.8)
    assert 0.8 <= number(longer, "time") < 0.8 + number(longer, "time_step")
