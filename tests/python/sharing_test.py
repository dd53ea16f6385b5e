"""`waywiser bench sharing`: processes on one GPU, on a virtual one; MPS by a program that stands for its control."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from rank_jobs import ROOT
from verb_runs import Run

from waywiser import _core
from waywiser.bench import sharing
from waywiser.bench.started_ranks import reason_in
from waywiser.errors import TransferError, UnavailableError

VIRTUAL = ("bench", "sharing", "--backend", "virtual_gpu", "--budget", "0.1")


@pytest.fixture(autouse=True)
def apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The ranks meet in a folder of the test, and have this package."""
    monkeypatch.setenv("WAYWISER_RUNTIME_DIR", str(tmp_path / "runtime"))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT / "python"), os.environ.get("PYTHONPATH", "")]))


def test_one_and_two_processes(run: Run) -> None:
    code, out, err = run(*VIRTUAL, "-n", "2", "--json")
    assert code == 0, err
    told = json.loads(out)
    assert [(row["mps"], row["processes"]) for row in told["rows"]] == [(False, 1), (False, 2)]
    for row in told["rows"]:
        assert sorted(row["us"]) == sorted(sharing.VARIANTS) and min(row["us"].values()) > 0
        assert row["fastest"] == min(row["us"], key=row["us"].get) and row["samples"] >= 3
    assert told["simulated"] and told["left_out"] == {"with MPS": "virtual GPUs have no MPS"}
    assert "with MPS: virtual GPUs have no MPS" in err.splitlines()


def test_without_a_gpu_it_says_so(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_core, "why_no_cuda", lambda: "no NVIDIA driver is loaded")
    rest = "--backend virtual_gpu takes a virtual GPU, whose times mean nothing"
    assert run("bench", "sharing") == (2, "", f"waywiser: sharing: no NVIDIA driver is loaded; {rest}\n")


def test_what_cannot_be_timed_is_named(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sharing, "VARIANTS", ("best",))
    code, out, err = run(*VIRTUAL, "-n", "2")
    assert (code, out) == (2, "")
    assert "1 process, without MPS: InputError: rank 0: best: is no variant of a halo exchange: " in err
    assert err.splitlines()[-1] == "waywiser: sharing: nothing could be timed"


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["-n", "9"], "--ranks 9: at most 8"),
        (["--sizes", "8"], "--sizes is not for sharing"),
        (["--plot", "x.png"], "--plot is for coalescing, merge and offload"),
        (["--json", "--csv"], "write one of them"),
        (["latency"], "time it alone"),
    ],
)
def test_options_of_others_are_refused(run: Run, words: list[str], why: str) -> None:
    code, out, err = run(*VIRTUAL, *words)
    assert (code, out) == (2, "") and why in err and err.count("\n") == 1


def test_ranks_of_a_job_do_not_start_ranks(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    job = {"RANK": "0", "WORLD_SIZE": "2", "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "2", "MASTER_PORT": "29500"}
    for name, value in {**job, "TORCHELASTIC_RUN_ID": "7"}.items():
        monkeypatch.setenv(name, value)
    said = "waywiser: sharing starts its ranks itself: leave the launcher out\n"
    assert run(*VIRTUAL) == (2, "", said)


def control(folder: Path, monkeypatch: pytest.MonkeyPatch, code: int = 0) -> Path:
    """A program that stands for MPS's control: notes its arguments, where it listens, and what it is told."""
    program, notes = folder / "bin/nvidia-cuda-mps-control", folder / "notes"
    program.parent.mkdir()
    note = 'echo "$* $CUDA_MPS_PIPE_DIRECTORY ${CUDA_VISIBLE_DEVICES-all} $(cat)"'
    program.write_text(f"#!/bin/sh\n{note} >>{notes}\necho no daemon\nexit {code}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent), prepend=os.pathsep)
    return notes


def test_mps_is_started_for_the_processes_and_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    notes = control(tmp_path, monkeypatch)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3,4")
    monkeypatch.setenv("CUDA_MPS_PIPE_DIRECTORY", "/elsewhere")
    monkeypatch.setattr(sharing, "_CLIENT", "import os; assert os.environ['CUDA_VISIBLE_DEVICES'] == '3'")
    folder = tmp_path / "work"
    folder.mkdir()
    with sharing._with_mps(sharing.Wanted(False, 1, 1.0), folder) as environment:
        assert notes.read_text() == f"-d {folder}/mps all \n"
        assert environment["CUDA_VISIBLE_DEVICES"] == "3"
        assert environment["CUDA_MPS_PIPE_DIRECTORY"] == f"{folder}/mps"
    assert notes.read_text().splitlines()[1:] == [f" {folder}/mps all quit"]
    with sharing._without_mps(folder) as environment:
        assert not Path(environment["CUDA_MPS_PIPE_DIRECTORY"]).exists()


def test_why_there_is_no_mps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = sharing.Wanted(False, 1, 1.0)
    monkeypatch.setattr(sharing.shutil, "which", lambda name: None)
    with pytest.raises(UnavailableError, match="is not installed"), sharing._with_mps(wanted, tmp_path):
        pass
    monkeypatch.undo()
    control(tmp_path, monkeypatch, 1)
    with pytest.raises(UnavailableError, match=r"failed \(1\): no daemon"), sharing._with_mps(wanted, tmp_path):
        pass


@pytest.mark.parametrize(
    ("client", "why"),
    [("import signal; signal.pause()", "no answer within 5 s"), ("raise MemoryError('no GPU')", "MemoryError: no GPU")],
)
def test_mps_that_serves_nobody_is_ended_with_its_last_words(
    client: str, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    notes = control(tmp_path, monkeypatch)
    monkeypatch.setattr(
        sharing, "_CLIENT", f"open('{tmp_path}/mps/server.log', 'w').write('Up\\nNo GPU.\\n\\n')\n{client}"
    )
    monkeypatch.setattr(sharing, "_PATIENCE", 5.0)
    with pytest.raises(UnavailableError) as raised, sharing._with_mps(sharing.Wanted(False, 1, 1.0), tmp_path):
        pass
    assert str(raised.value) == f"MPS serves no program: {why}; server.log: No GPU."
    assert notes.read_text().splitlines()[-1].endswith(" quit")


def test_after_a_program_that_fails_mps_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    control(tmp_path, monkeypatch)
    monkeypatch.setattr(sharing, "_CLIENT", "")

    def timed(wanted: sharing.Wanted, mps: bool, processes: int, *rest: object) -> sharing.Point:
        if processes == 2:
            raise TransferError("the ranks did not end in time")
        return sharing.Point(mps, processes, {}, 3)

    monkeypatch.setattr(sharing, "_timed", timed)
    missing: dict[str, str] = {}
    found = sharing.points(sharing.Wanted(False, 3, 1.0), tmp_path, missing.__setitem__, lambda *_: None)
    assert [(one.mps, one.processes) for one in found] == [(False, 1), (False, 3), (True, 1)]
    assert missing == {
        "2 processes, without MPS": "the ranks did not end in time",
        "2 processes, with MPS": "the ranks did not end in time",
        "more processes, with MPS": "a program that failed leaves MPS of no use for others",
    }


def test_the_table() -> None:
    found = [
        sharing.Point(False, 1, {"whole_field": 30e-6, "per_neighbor": 20e-6, "packed": 10e-6}, 5),
        sharing.Point(True, 8, {"whole_field": 30e-6, "packed": 40e-6}, 5),
    ]
    lines = sharing.tables(found, "")
    assert lines[2].split() == ["off", "1", "30", "20", "10", "packed"]
    assert lines[3].split() == ["on", "8", "30", "-", "40", "whole_field"]
    assert sharing.tables([], "") == []
    assert sharing.as_csv(found, "").splitlines()[-1] == "on,8,packed,40,"


def test_the_first_rank_that_says_why_is_found_whatever_module_its_error_is_of() -> None:
    problems = "[0] Traceback\nwaywiser.InputError: rows are no number\nValueError: another\n"
    assert reason_in(problems) == "InputError: rows are no number"
    assert reason_in("KeyError: 'x'\n") == "KeyError: 'x'"
    assert reason_in("killed\n by  9") == "killed by 9"
