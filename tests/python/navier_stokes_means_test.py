"""apps/navier_stokes: means over time in frames and checkpoints."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from navier_stokes_runs import solve
from rank_jobs import ROOT, runtime_folder

sys.path.insert(0, str(ROOT / "apps/navier_stokes"))
from vtu import read_field, read_frame, read_series

__all__ = ["runtime_folder"]
pytestmark = pytest.mark.slow
OPTIONS = ["--cells", 64, "--step", 0.01, "--tolerance", 1e-13, "--average-from", 0.04]
NAMES = ("mean_velocity", "mean_pressure", "velocity_variance")


def test_means_are_those_of_the_frames(tmp_path: Path) -> None:
    """A frame for each step; those until the time 0.04 do not count."""
    solve(2, "cavity", *OPTIONS, "--steps", 12, "--frames", 12, "--output", tmp_path)
    series = read_series(tmp_path)
    counted = [read_frame(file) for time, file in series if time > 0.041]
    assert (len(series), len(counted)) == (12, 8)
    velocity = np.array([each.velocity for each in counted])
    pressure = np.array([each.pressure for each in counted])
    assert np.abs(read_field(tmp_path, "mean_velocity") - velocity.mean(0)).max() < 1e-13
    assert np.abs(read_field(tmp_path, "mean_pressure") - pressure.mean(0)).max() < 1e-10
    assert velocity.var(0).max() > 1e-6
    assert np.abs(read_field(tmp_path, "velocity_variance") - velocity.var(0)).max() < 1e-13


@pytest.mark.parametrize("ranks", [2, 3])
def test_a_checkpoint_keeps_them_for_any_number_of_ranks(ranks: int, tmp_path: Path) -> None:
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    solve(2, "cavity", *OPTIONS, "--steps", 12, "--output", whole)
    more = [*OPTIONS, "--output", parts, "--checkpoint", 7]
    solve(2, "cavity", *more, "--steps", 7)
    assert solve(ranks, "cavity", *more, "--steps", 12, "--resume", "yes")["first_step"] == 7
    for name in NAMES:
        difference = np.abs(read_field(parts, name) - read_field(whole, name)).max()
        assert difference == 0 if ranks == 2 else difference < 1e-9


def test_without_the_option_there_are_none_and_a_run_may_begin_with_them_later(tmp_path: Path) -> None:
    plain = [*OPTIONS[:-2], "--output", tmp_path, "--checkpoint", 2]
    solve(1, "cavity", *plain, "--steps", 2)
    with pytest.raises(KeyError):
        read_field(tmp_path, "mean_velocity")
    solve(1, "cavity", *plain, "--average-from", 0, "--steps", 3, "--resume", "yes")
    assert (read_field(tmp_path, "mean_velocity") == read_field(tmp_path, "velocity")).all()
    assert (read_field(tmp_path, "velocity_variance") == 0).all()
    solve(1, "cavity", *plain, "--steps", 4, "--resume", "yes")
    with pytest.raises(KeyError):
        read_field(tmp_path, "velocity_variance")
