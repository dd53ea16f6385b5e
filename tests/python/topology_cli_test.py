"""The verbs `topology` and `place`."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from verb_runs import Run

from waywiser.topology import load_topology, read_topology
from waywiser.topology.load import read_topology_file


def test_this_machine(run: Run) -> None:
    code, out, err = run("topology")
    assert (code, err) == (0, "")
    assert "host" in out and "fingerprint" in out


def test_tree_and_matrix(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    code, out, _ = run("topology", "--machine", "dgx-1v")
    assert code == 0
    assert "gpu0  Tesla V100-SXM2-16GB" in out and "PCIe 3 ×16 15.8 GB/s" in out
    assert "NV2" in out and "SYS" in out


def test_a_matrix_for_a_pipe_can_be_read_again(run: Run, tmp_path: Path) -> None:
    code, out, _ = run("topology", "--machine", "hse-e", "--format", "matrix")
    assert code == 0
    (tmp_path / "matrix").write_text(out)
    assert read_topology_file(tmp_path / "matrix").matrix()[1] == load_topology("hse-e").matrix()[1]


@pytest.mark.parametrize("form", ["json", "nccl", "hwloc", "matrix", "svg", "png"])
def test_files_of_each_format(form: str, tmp_path: Path, run: Run) -> None:
    path = tmp_path / "out"
    code, out, _ = run("topology", "--machine", "hse-e", "--format", form, "--output", str(path))
    assert (code, out) == (0, "")
    if form in ("svg", "png"):
        assert path.read_bytes().startswith(b"\x89PNG" if form == "png" else b"<?xml")
        return
    code, out, _ = run("topology", "--from", str(path), "--format", "json")
    assert code == 0
    assert read_topology(out, "out").matrix()[1] == load_topology("hse-e").matrix()[1]


def test_the_format_follows_from_the_ending(tmp_path: Path, run: Run) -> None:
    path = tmp_path / "machine.json"
    assert run("topology", "--machine", "hse-a", "-o", str(path))[0] == 0
    assert json.loads(path.read_text())["name"] == "hse-a"


def test_place(run: Run) -> None:
    code, out, _ = run("place", "--gpus", "4", "--nics", "--machine", "dgx-1v")
    assert code == 0
    assert "CUDA_VISIBLE_DEVICES=0,1,2,3" in out
    assert "all 6 pairs have NVLink" in out
    assert "Name=gpu Type=tesla_v100_sxm2_16gb File=/dev/nvidia0 Cores=0-19 Links=-1,1,1,2,2,0,0,0" in out
    assert "nic1 mlx5_1" in out


def test_place_as_json(run: Run) -> None:
    code, out, _ = run("place", "--gpus", "2", "--machine", "dgx-1v", "--json")
    assert code == 0
    assert json.loads(out)["cuda_visible_devices"] == "0,3"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["topology", "--machine", "nope"], "'nope' is not a machine; a file is written with a slash"),
        (["topology", "--from", "/nonexistent/file"], "/nonexistent/file: cannot read"),
        (["topology", "--from", "a", "--machine", "dgx-2"], "not both"),
        (["topology", "--format", "poem"], "poem"),
        (["topology", "--machine", "hse-a", "-o", "out.xml"], "add --format"),
        (["topology", "--machine", "hse-a", "--source", "hwloc"], "--source is for this machine only"),
        (["topology", "--machine", "hse-a", "-o", "/proc/nothing/x.json"], "/proc/nothing/x.json: cannot write"),
        (["place", "--machine", "dgx-1v"], "--gpus"),
        (["place", "--gpus", "0", "--machine", "dgx-1v"], "--gpus"),
        (["place", "--gpus", "9", "--machine", "dgx-1v"], "machine dgx-1v has 8 GPUs, 9 were asked for"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(arguments: list[str], words: str, run: Run) -> None:
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert words in err
    assert err.count("\n") == 1


def test_a_bad_file_is_named(tmp_path: Path, run: Run) -> None:
    path = tmp_path / "bad.json"
    path.write_bytes(b"\xff\xfe")
    code, _, err = run("topology", "--from", str(path))
    assert (code, err) == (2, f"waywiser: {path}: not text in UTF-8 (byte 0)\n")


def test_json_is_read_in_proportion_to_its_length(tmp_path: Path) -> None:
    """A million values in one list; in quadratic time that is more than the deadline."""
    file = tmp_path / "long.json"
    file.write_text('{"schema":"waywiser.topology","version":1,"devices":[' + "{}," * 1_000_000 + "{}]}")
    command = [sys.executable, "-c", "from waywiser.cli import main; main()", "topology", "--from", file]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=100)
    assert done.returncode == 2 and done.stdout == "" and done.stderr.count("\n") == 1
