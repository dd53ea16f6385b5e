"""The verbs `topology` and `place`."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console
from verb_runs import Run

from waywiser.report.topology_text import matrix_tables
from waywiser.topology import load_topology, read_topology
from waywiser.topology.load import read_topology_file
from waywiser.topology.matrix import ordered_matrix, write_matrix


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


def test_nothing_is_cut_in_a_pipe(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """An A100 node has 16 columns: more than 80 characters."""
    monkeypatch.setenv("COLUMNS", "80")
    code, out, _ = run("topology", "--machine", "dgx-a100")
    assert code == 0 and "…" not in out
    lines = out.splitlines()
    head = next(i for i, line in enumerate(lines) if line.split()[:2] == ["gpu0", "gpu1"])
    assert lines[head].split() == [
        *(f"gpu{i}" for i in range(8)),
        *(f"nic{i}" for i in range(8)),
        "CPU",
        "affinity",
        "NUMA",
    ]
    assert lines[head + 1].split() == [
        "gpu0",
        "X",
        *["NV12"] * 7,
        *["PIX"] * 2,
        *["NODE"] * 2,
        *["SYS"] * 4,
        "0-63,128-191",
        "0",
    ]
    assert "nic4: mlx5_4, nic5: mlx5_5" in out
    assert any(line.startswith("│") and "gpu5" in line and "achievable)" in line for line in lines)


def test_a_terminal_gets_whole_columns() -> None:
    machine = load_topology("dgx-a100")
    tables = matrix_tables(machine, 70)
    heads = [[str(column.header) for column in table.columns] for table in tables]
    assert [len(head) for head in heads] == [12, 8]
    shown = [name for head in heads for name in head if name]
    assert shown == [*(f"gpu{i}" for i in range(8)), *(f"nic{i}" for i in range(8)), "CPU affinity", "NUMA"]
    console = Console(width=70, file=io.StringIO())
    for table in tables:
        console.print(table)
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert "…" not in text and text.count("NV12") == 56 and max(map(len, text.splitlines())) <= 70


def test_nics_are_in_order_whatever_the_tree() -> None:
    text = "\tGPU0\tNIC0\tNIC1\tCPU Affinity\tNUMA Affinity\nGPU0\tX\tSYS\tPIX\t0-3\t0\n"
    text += "NIC0\tSYS\tX\tSYS\nNIC1\tPIX\tSYS\tX\n"
    machine = read_topology(text + "\nNIC Legend:\n\n  NIC0: mlx5_0\n  NIC1: mlx5_1\n", "x")
    assert machine.matrix()[0] == ["gpu0", "nic1", "nic0"]
    assert ordered_matrix(machine) == (
        ["gpu0", "nic0", "nic1"],
        [["X", "SYS", "PIX"], ["SYS", "X", "SYS"], ["PIX", "SYS", "X"]],
    )
    again = read_topology(write_matrix(machine), "y")
    assert ordered_matrix(again) == ordered_matrix(machine)
    assert [again.device(id_).name for id_ in ("nic0", "nic1")] == ["mlx5_0", "mlx5_1"]


_H200 = """\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity
GPU0\tX\tNV18\t{}\t0
GPU1\tNV18\tX\t{}\t1
"""


@pytest.mark.parametrize(
    ("first", "second", "cores"),
    [
        ("0-63,128-191", "64-127,192-255", ["0-63", "64-127"]),
        ("0-31", "32-63", ["0-31", "32-63"]),  # one thread a core
        ("0-31,96-127", "32-63,64-95", ["0-31,96-127", "32-95"]),  # second threads are elsewhere: not understood
    ],
)
def test_lines_for_slurm_count_cores_without_hyperthreads(first: str, second: str, cores: list[str]) -> None:
    placement = read_topology(_H200.format(first, second), "x").place(2, False, {})
    assert [line.partition("Cores=")[2].split()[0] for line in placement.gres_conf] == cores


def test_an_unnamed_machine_has_the_name_of_its_file(tmp_path: Path) -> None:
    file = tmp_path / "h200-node.txt"
    file.write_text(_H200.format("0-3", "4-7"))
    assert read_topology_file(file).name == "h200-node"
    assert read_topology(file.read_text(), "stdin").name == "matrix"
    (tmp_path / "ndv5-topo.xml").write_text(_BRIDGED.format(speed="16.0 GT/s PCIe", width=16))
    assert read_topology_file(tmp_path / "ndv5-topo.xml").name == "ndv5-topo"


_BRIDGED = """<system version="1"><cpu numaid="0" affinity="f" arch="x86_64" vendor="GenuineIntel">
<pci busid="0000:01:00.0" class="0x060400" link_speed="{speed}" link_width="{width}">
<pci busid="0000:02:00.0" class="0x030200" link_speed="32.0 GT/s PCIe" link_width="16"><gpu dev="0" sm="90"/></pci>
</pci></cpu></system>"""


def test_a_virtual_bridge_is_not_believed() -> None:
    virtual = read_topology(_BRIDGED.format(speed="2.5 GT/s PCIe", width=1), "x")
    link = next(one for one in virtual.links if "switch0" in (one.a, one.b) and "gpu0" not in (one.a, one.b))
    assert (link.generation, link.nominal) == (0, None)
    assert (
        "1 bridge above a GPU or NIC with PCIe 1 x1, as virtual machines show it: taken as of unknown rate"
        in virtual.notes
    )
    real = read_topology(_BRIDGED.format(speed="16.0 GT/s PCIe", width=8), "x")
    assert [one.generation for one in real.links if one.kind == "pcie"] == [4, 5] and not any(
        "bridge" in note for note in real.notes
    )


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
