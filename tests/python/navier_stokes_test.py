"""apps/navier_stokes: flows with known solutions, any number of ranks, any variant."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from navier_stokes_runs import PROGRAM, number, refused, solve
from rank_jobs import ROOT, finish, runtime_folder, start

sys.path.insert(0, str(ROOT / "apps/navier_stokes"))
from measures import cavity_difference, history, orders
from vtu import last_frame

__all__ = ["runtime_folder"]
pytestmark = pytest.mark.slow

TIGHT = ["--tolerance", "1e-13"]


@pytest.mark.parametrize("shape", ["even", "perturbed", "triangles"])
def test_taylor_green_is_of_second_order(shape: str) -> None:
    reports = [solve(1, "taylor_green", "--shape", shape, "--cells", n, "--time", 0.5) for n in (1024, 4096)]
    sizes = [number(report, "cells") ** -0.5 for report in reports]
    assert 1.8 < orders(sizes, [number(report, "velocity_error") for report in reports])[0] < 2.4
    assert all(number(report, "divergence") < 1e-6 for report in reports)


@pytest.mark.parametrize("shape", ["even", "triangles"])
def test_poiseuille_is_of_second_order(shape: str) -> None:
    reports = [
        solve(1, "poiseuille", "--shape", shape, "--cells", n, "--time", 4, "--courant", 0.8) for n in (128, 512)
    ]
    sizes = [number(report, "cells") ** -0.5 for report in reports]
    assert 1.7 < orders(sizes, [number(report, "velocity_error") for report in reports])[0] < 2.6


def test_cavity_beside_ghia(tmp_path: Path) -> None:
    solve(1, "cavity", "--cells", 1024, "--time", 12, "--courant", 0.6, "--output", tmp_path)
    assert cavity_difference(last_frame(tmp_path), 100) < 0.02
    assert history(tmp_path)["change"][-1] < 1e-2


@pytest.mark.parametrize("case", ["bend", "draft_tube"])
def test_a_duct_gives_out_what_it_takes_in(case: str) -> None:
    report = solve(2, case, "--cells", 800, "--steps", 10, "--tolerance", 1e-10)
    assert number(report, "divergence") < 1e-7
    assert number(report, "energy") > 0.5


def test_a_draft_tube_is_round_at_its_inlet_and_wide_at_its_outlet(tmp_path: Path) -> None:
    solve(1, "draft_tube", "--cells", 800, "--steps", 1, "--output", tmp_path)
    points = last_frame(tmp_path).points
    inlet, outlet = points[points[:, 0] < 1e-9], points[points[:, 1] > points[:, 1].max() - 1e-9]
    assert np.ptp(inlet[:, 1]) == pytest.approx(1, rel=0.05) and np.ptp(inlet[:, 2]) == pytest.approx(1, rel=0.05)
    assert np.hypot(inlet[:, 1], inlet[:, 2]).max() == pytest.approx(0.5)
    assert np.ptp(outlet[:, 0]) == pytest.approx(1.4, rel=0.05) and np.ptp(outlet[:, 2]) == pytest.approx(2.4, rel=0.05)


def test_flow_around_a_cylinder_pushes_it(tmp_path: Path) -> None:
    solve(2, "cylinder", "--cells", 1024, "--steps", 100, "--output", tmp_path)
    assert 0.5 < history(tmp_path)["force_x"][-1] < 2


def test_small_cells_are_solved_as_well_as_large_ones(tmp_path: Path) -> None:
    """The cells at a cylinder have a ten thousandth of the volume of those far away."""
    forces = []
    for tolerance in (1e-6, 1e-10):
        options = ["--cells", 1024, "--step", 0.004, "--steps", 120, "--tolerance", tolerance]
        solve(1, "cylinder", *options, "--output", tmp_path)
        forces.append([history(tmp_path)[name][-1] for name in ("force_x", "force_y")])
    assert np.abs(np.subtract(*forces)).max() < 1e-4


@pytest.mark.parametrize(("case", "cells"), [("cavity", 1024), ("bend", 800)])
def test_results_do_not_depend_on_the_ranks(case: str, cells: int, tmp_path: Path) -> None:
    frames = []
    for ranks in (1, 2, 4):
        folder = tmp_path / str(ranks)
        solve(ranks, case, "--cells", cells, "--steps", 3, "--output", folder, *TIGHT)
        frames.append(last_frame(folder))
        assert set(frames[-1].rank) == set(range(ranks))
    assert np.abs(frames[0].velocity).max() > 0.1
    for frame in frames[1:]:
        assert np.abs(frame.velocity - frames[0].velocity).max() < 1e-11
        assert np.abs(frame.pressure - frames[0].pressure).max() < 1e-9


def test_each_rank_computes_levels_of_few_cells_whole(tmp_path: Path) -> None:
    frames = []
    for whole, shared in ((0, 2), (1100, 1)):
        folder = tmp_path / str(whole)
        options = ["--cells", 4096, "--whole-level", whole, "--steps", 2, *TIGHT]
        report = solve(3, "cavity", *options, "--output", folder)
        assert number(report, "first_whole_level") == shared
        momentum, pressure = (number(report, f"{name}_iterations_per_step") for name in ("momentum", "pressure"))
        in_cycle = 4 * shared + 1  # four on each level that ranks share, one that gathers
        assert number(report, "exchanges_per_step") == 4 + momentum - 1 + pressure * in_cycle
        frames.append(last_frame(folder))
    assert np.abs(frames[0].velocity - frames[1].velocity).max() < 1e-11


@pytest.mark.parametrize("viscous", [False, True])
def test_the_velocity_is_solved_as_exactly_as_is_asked_for(viscous: bool, tmp_path: Path) -> None:
    """Steps are counted before, by the eigenvalues, which lie far apart where the flow is viscous."""
    options = ["--cells", 1024, "--shape", "triangles", "--steps", 5, "--record", 1, "--tolerance", 1e-6]
    options += ["--reynolds", 1] if viscous else []
    report = solve(2, "cavity", *options, "--output", tmp_path)
    residuals = history(tmp_path)["momentum_residual"]
    assert 0 < residuals.max() <= 1e-9
    assert (number(report, "momentum_iterations_per_step") > 60) == viscous


@pytest.mark.parametrize("variant", ["whole_field", "per_neighbor", "auto"])
def test_results_do_not_depend_on_the_variant(variant: str, tmp_path: Path) -> None:
    frames = []
    for each in ("packed", variant):
        options = ["--cells", 256, "--steps", 5, "--shape", "triangles", "--exchange", each, "--tune", 0.001]
        report = solve(3, "taylor_green", *options, "--output", tmp_path / each)
        assert each == "auto" or str(report["variants"]).startswith(each + " ")
        frames.append(last_frame(tmp_path / each))
    assert (frames[0].velocity == frames[1].velocity).all()
    assert (frames[0].pressure == frames[1].pressure).all()


def test_on_virtual_gpus(tmp_path: Path) -> None:
    options = ["--case", "taylor_green", "--shape", "triangles", "--cells", "3200", "--steps", "3", *TIGHT]
    options += ["--whole-level", "0"]  # so that exchanges fill the ghosts of a coarse level, too
    frames = []
    for name, variant in (("navier_stokes", "packed"), ("navier_stokes_virtual", "direct")):
        where = ["--output", str(tmp_path / name), "--exchange", variant, "--progress", "no"]
        code, out, err = finish(start("run", "-n", "2", PROGRAM.with_name(name), *options, *where))
        assert code == 0, err
        assert any(f'"variants": "{variant} ' in line for line in out)
        frames.append(last_frame(tmp_path / name))
    assert np.abs(frames[0].velocity - frames[1].velocity).max() < 1e-12


def test_multigrid_keeps_iterations_few() -> None:
    counts = [
        number(solve(1, "taylor_green", "--cells", n, "--steps", 4, *TIGHT), "pressure_iterations_per_step")
        for n in (1024, 16384)
    ]
    assert 2 < counts[0] < 30
    assert counts[1] < 1.7 * counts[0]  # without multigrid it would be 4 times


def test_variants_that_hosts_cannot_use_say_why() -> None:
    refused(1, "no kernel serves", 2, "cavity", "--cells", 64, "--steps", 1, "--exchange", "direct")
