"""apps/navier_stokes: flows with known solutions, any number of ranks, checkpoints, files."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from rank_jobs import ROOT, finish, runtime_folder, start

sys.path.insert(0, str(ROOT / "apps/navier_stokes"))
from measures import cavity_difference, history, orders, strouhal
from vtu import last_frame, read_frame, read_series

__all__ = ["runtime_folder"]
pytestmark = pytest.mark.slow
PROGRAM = ROOT / "build/apps/navier_stokes"
TIGHT = ["--tolerance", "1e-13"]


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


def test_a_killed_run_goes_on_from_its_checkpoint(tmp_path: Path) -> None:
    options = ["--cells", 64, "--shape", "perturbed", "--checkpoint", 20, "--record", 1]
    folder, pids = tmp_path / "killed", tmp_path / "pids"
    command = words("cavity", *options, "--output", folder, "--steps", 2000)[1:]
    command[command.index("no")] = "yes"  # --progress: a line at each tenth
    process = start("run", "-n", "2", "sh", "-c", f'echo $$ >> {pids}; exec {PROGRAM} "$@"', "sh", *command)
    assert process.stderr is not None and "10 %" in process.stderr.readline()
    for pid in pids.read_text().split():
        os.kill(int(pid), signal.SIGKILL)
    process.communicate(timeout=100)
    assert process.returncode != 0
    first = int((folder / "checkpoint").read_text())
    assert first >= 200 - 20 and first % 20 == 0

    last = ["--steps", first + 40]
    resumed = solve(2, "cavity", *options, *last, "--output", folder, "--resume", "yes")
    assert resumed["first_step"] == first
    solve(2, "cavity", *options, *last, "--output", tmp_path / "whole")
    frames = [last_frame(each) for each in (folder, tmp_path / "whole")]
    assert (frames[0].velocity == frames[1].velocity).all() and (frames[0].pressure == frames[1].pressure).all()
    lines = [history(each)["step"] for each in (folder, tmp_path / "whole")]
    assert (lines[0] == np.arange(1, first + 41)).all() and (lines[1] == lines[0]).all()


def refused(code: int, text: str, ranks: int, case: str, *options: object) -> None:
    got, _, err = finish(begun(ranks, case, *options))
    assert (got, text in err) == (code, True), err
    said = [line for line in err.splitlines() if line.startswith("navier_stokes: ")]
    assert len(said) == (1 if code == 2 else ranks)


def test_checkpoints_of_other_runs_and_damaged_ones_are_refused(tmp_path: Path) -> None:
    options = ["--cells", 64, "--output", tmp_path, "--checkpoint", 2, "--resume", "yes"]
    solve(2, "cavity", *options, "--steps", 2)
    refused(2, "is not a checkpoint of this run", 1, "cavity", *options, "--steps", 4)
    file = tmp_path / "checkpoint.2.1"
    data = bytearray(file.read_bytes())
    data[-100] ^= 1
    file.write_bytes(data)
    refused(1, "checkpoint.2.1 is damaged", 2, "cavity", *options, "--steps", 4)
    (tmp_path / "checkpoint").write_text("two\n")
    refused(1, "is damaged", 1, "cavity", *options, "--steps", 4)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (["--cells", "many"], "--cells 'many'"),
        (["--shape", "round"], "--shape 'round'"),
        (["--reynolds", "-1"], "--reynolds '-1'"),
        (["--resume", "yes"], "checkpoints need a folder"),
        (["--speed", "1"], "--speed"),
    ],
)
def test_bad_options_are_refused_in_one_line(options: list[str], text: str) -> None:
    refused(2, text, 1, "cavity", *options)


def strictly(text: str) -> dict[str, object]:
    """JSON has neither infinity nor NaN, which Python would take."""

    def refuse(constant: str) -> object:
        raise ValueError(constant)

    report = json.loads(text, parse_constant=refuse)
    assert isinstance(report, dict)
    return report


def no_result(ending: str, text: str, ranks: int, folder: Path, case: str, *options: object) -> dict[str, object]:
    """The report of a flow that has ended with a reason: in one line, with exit code 3, at all ranks."""
    process = begun(ranks, case, *options, "--output", folder)
    out, err = process.communicate(timeout=100)
    said = [line for line in err.splitlines() if line.startswith("navier_stokes: ")]
    assert process.returncode == 3 and len(said) == 1 and text in said[0], err
    report = strictly((folder / "report.json").read_text())
    assert strictly(out) == report and report["ending"] == ending
    assert said[0] == f"navier_stokes: {report['reason']}"
    return report


@pytest.mark.parametrize("ranks", [1, 2])
@pytest.mark.parametrize(
    "options",
    [
        ["--cells", 1024, "--step", 0.5, "--time", 1000, "--steady", 1e-4],
        ["--cells", 64, "--courant", 50, "--steps", 1000],
        ["--cells", 64, "--courant", 50, "--steps", 1000, "--record", 1000, "--steady", 1e-4],  # found as not finite
    ],
)
def test_a_flow_that_blows_up_says_so(options: list[object], ranks: int, tmp_path: Path) -> None:
    no_result("blown_up", "the flow has blown up at step ", ranks, tmp_path, "cavity", *options)
    lines = history(tmp_path) if len((tmp_path / "history.csv").read_text().splitlines()) > 1 else {}
    assert all(np.isfinite(column).all() for column in lines.values())
    assert not list(tmp_path.glob("flow*"))


@pytest.mark.parametrize("ranks", [1, 2])
def test_a_flow_that_is_not_solved_says_so(ranks: int, tmp_path: Path) -> None:
    options = ["--cells", 1024, "--steps", 5]
    few = [*options, "--iterations", 2]
    no_result("unconverged", "the flow is unconverged at step 1: the velocity", ranks, tmp_path, "cavity", *few)
    few = [*options, "--iterations", 6, "--tolerance", 1e-9, "--courant", 0.01, "--reynolds", 1000]
    text = "the flow is unconverged at step 1: the pressure"
    no_result("unconverged", text, ranks, tmp_path, "taylor_green", *few, "--shape", "triangles")


def test_a_flow_of_too_few_cells_is_unresolved(tmp_path: Path) -> None:
    options = ["--cells", 800, "--reynolds", 1e7, "--steps", 5]
    text = "the flow is unresolved: the Reynolds number of the velocity difference at a face is "
    report = no_result("unresolved", text, 2, tmp_path, "draft_tube", *options, "--checkpoint", 5)
    assert number(report, "face_reynolds") > 1e4 and (tmp_path / "checkpoint").read_text() == "5\n"
    assert len(read_series(tmp_path)) == 1  # it is there to be looked at
    assert solve(2, "draft_tube", *options, "--face-reynolds", 0)["ending"] == "complete"
    assert solve(1, "cavity", "--cells", 64, "--steps", 500, "--steady", 0.1)["ending"] == "steady"


@pytest.mark.parametrize("steps", [10, 20])
def test_checkpoints_of_a_flow_that_blows_up_replace_none(steps: int, tmp_path: Path) -> None:
    """Those of the run before are in the same folder. The bad one has written its own at step 10, and is taken back."""
    good = ["--cells", 1024, "--checkpoint", 10]
    solve(2, "cavity", *good, "--steps", steps, "--output", tmp_path)
    kept = {file.name: file.read_bytes() for file in tmp_path.glob(f"checkpoint.{steps}.*")}
    assert len(kept) == 2
    bad = ["--courant", 6, "--steps", 1000, "--record", 5]
    report = no_result("blown_up", "blown up", 2, tmp_path, "cavity", *good, *bad)
    assert number(report, "steps") > 10
    assert (tmp_path / "checkpoint").read_text() == f"{steps}\n"
    assert {file.name: file.read_bytes() for file in tmp_path.glob("checkpoint.*")} == kept
    resumed = solve(2, "cavity", *good, "--steps", steps + 3, "--output", tmp_path, "--resume", "yes")
    assert resumed["first_step"] == steps


def test_variants_that_hosts_cannot_use_say_why() -> None:
    refused(1, "no kernel serves", 2, "cavity", "--cells", 64, "--steps", 1, "--exchange", "direct")


def test_a_series_lists_its_frames(tmp_path: Path) -> None:
    solve(3, "taylor_green", "--cells", 64, "--steps", 8, "--frames", 4, "--output", tmp_path)
    series = read_series(tmp_path)
    assert len(series) == 4
    assert [time for time, _ in series] == sorted({time for time, _ in series})
    frame = read_frame(series[0][1])
    assert len(frame.cells) == len(frame.pressure) == 64
    assert {len(cell) for cell in frame.cells} == {4}
    assert np.isclose(frame.centers().mean(axis=0), [np.pi, np.pi, 0]).all()


def test_the_time_left_is_shown() -> None:
    command = [PROGRAM, "--case", "cavity", "--cells", "64", "--steps", "20"]
    err = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    assert "[##########..........] 50 %, step 10 of 20, 1 s left" in err
    assert err.splitlines()[-1] == "[####################] 100 %, step 20 of 20"


def test_the_driver_draws_a_run(tmp_path: Path) -> None:
    driver = [sys.executable, str(ROOT / "apps/navier_stokes/run.py")]
    command = [
        *driver,
        "case",
        "bend",
        "--ranks",
        "2",
        "--output",
        str(tmp_path),
        "--",
        "--cells",
        "300",
        "--steps",
        "4",
    ]
    done = subprocess.run([*command, "--record", "1"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "ranks: 2\n" in done.stdout
    for name in ("fields.png", "residual.png"):
        assert (tmp_path / name).read_bytes().startswith(b"\x89PNG") and (tmp_path / name).stat().st_size > 10_000
    done = subprocess.run(
        [*driver, "validate", "boat", "--output", str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "there is no validation boat" in done.stderr


def test_the_driver_says_why_a_flow_is_no_result(tmp_path: Path) -> None:
    driver = [sys.executable, str(ROOT / "apps/navier_stokes/run.py"), "case", "cavity", "--output", str(tmp_path)]
    options = ["--cells", "64", "--courant", "50", "--steps", "100", "--progress", "no"]
    done = subprocess.run([*driver, "--", *options], capture_output=True, text=True, check=False)
    assert done.returncode == 3 and "Traceback" not in done.stderr
    said = [line for line in done.stderr.splitlines() if line.startswith("run.py: ")]
    assert len(said) == 1 and "the flow has blown up at step " in said[0]


def test_strouhal_is_the_frequency_of_the_lift() -> None:
    time = np.linspace(0, 50, 2000)
    assert abs(strouhal(time, 0.3 * np.sin(2 * np.pi * 0.165 * time) + 0.01) - 0.165) < 1e-4
    assert strouhal(time, time) == 0
