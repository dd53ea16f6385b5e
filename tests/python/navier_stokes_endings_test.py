"""apps/navier_stokes: checkpoints, flows that have no result, files, pictures, the time left."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from navier_stokes_runs import PROGRAM, begun, number, refused, solve, words
from rank_jobs import ROOT, runtime_folder, start

sys.path.insert(0, str(ROOT / "apps/navier_stokes"))
from measures import history, strouhal
from vtu import last_frame, read_frame, read_series

__all__ = ["runtime_folder"]
pytestmark = pytest.mark.slow


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


@pytest.mark.parametrize("ranks", [1, 3])
def test_another_number_of_ranks_goes_on(ranks: int, tmp_path: Path) -> None:
    options = ["--cells", 100, "--shape", "perturbed", "--tolerance", 1e-13, "--checkpoint", 5]
    folder = tmp_path / "other"
    solve(2, "cavity", *options, "--output", folder, "--steps", 10)
    resumed = solve(ranks, "cavity", *options, "--output", folder, "--steps", 20, "--resume", "yes")
    assert resumed["first_step"] == 10
    solve(2, "cavity", *options, "--output", tmp_path / "same", "--steps", 20)
    frames = [last_frame(each) for each in (folder, tmp_path / "same")]
    assert np.abs(frames[0].velocity - frames[1].velocity).max() < 1e-11
    assert np.abs(frames[0].pressure - frames[1].pressure).max() < 1e-9
    names = {f"checkpoint.{step}.{rank}" for step in (15, 20) for rank in range(ranks)}
    assert {each.name for each in folder.glob("checkpoint.*")} == names


def test_a_run_goes_on_with_other_steps_and_another_tolerance(tmp_path: Path) -> None:
    """What defines a flow is its mesh, boundaries and fluid."""
    options = ["--cells", 64, "--output", tmp_path, "--checkpoint", 2, "--resume", "yes"]
    solve(1, "cavity", *options, "--steps", 2)
    assert solve(1, "cavity", *options, "--steps", 4, "--step", 0.01, "--tolerance", 1e-8)["first_step"] == 2
    refused(2, "it has another case, mesh or fluid", 1, "cavity", *options, "--steps", 6, "--reynolds", 50)


def test_checkpoints_of_other_runs_and_damaged_ones_are_refused(tmp_path: Path) -> None:
    options = ["--cells", 64, "--output", tmp_path, "--checkpoint", 2, "--resume", "yes"]
    solve(2, "cavity", *options, "--steps", 2)
    refused(2, "is not a checkpoint of this run", 1, "cavity", *options, "--steps", 4, "--shape", "triangles")
    file = tmp_path / "checkpoint.2.1"
    data = bytearray(file.read_bytes())
    data[-100] ^= 1
    file.write_bytes(data)
    refused(2, "checkpoint.2.1 is damaged", 2, "cavity", *options, "--steps", 4)
    file.write_bytes(b"")
    refused(2, "checkpoint.2.1 is not a checkpoint of this run", 2, "cavity", *options, "--steps", 4)
    file.unlink()
    refused(2, "checkpoint.2.1: cannot open it: No such file", 2, "cavity", *options, "--steps", 4)
    for text in ("two\n", ""):
        (tmp_path / "checkpoint").write_text(text)
        refused(2, "is damaged", 1, "cavity", *options, "--steps", 4)
    (tmp_path / "checkpoint").unlink()
    (tmp_path / "checkpoint").mkdir()
    refused(2, "checkpoint: is neither a file nor a block device", 1, "cavity", *options, "--steps", 4)


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
