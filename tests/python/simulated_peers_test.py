"""`waywiser measure --peers --machine`: the peer report of machines that are not here."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest
from verb_runs import Run

MACHINES = Path(__file__).parents[2] / "python/waywiser/machines"


def report(run: Run, folder: Path, machine: str) -> dict[str, Any]:
    code, out, err = run("measure", "--peers", "--machine", machine, "-r", str(folder), "--format", "json")
    assert code == 0, err
    told: dict[str, Any] = json.loads(out)
    assert told == json.loads((folder / "peers.json").read_text()) and told["simulated"] is True
    return told


def test_a_mesh_has_the_published_rates(run: Run, tmp_path: Path) -> None:
    """Published: 48.34 GB/s over two NVLinks, 24 over one, 11 over PCIe; gpu0 has peer access to four others."""
    told = report(run, tmp_path, "dgx-1v")
    assert told["connectivity"][0] == [True] * 5 + [False] * 3
    one_way, both_ways = told["one_way"], told["both_ways"]
    assert one_way["on"][0][1:5] == pytest.approx([24, 24, 48.34, 48.34], rel=0.02) and one_way["on"][0][5] is None
    assert one_way["off"][0][1:] == pytest.approx([11] * 7, rel=0.1)
    for key in ("one_way", "both_ways", "latency_gpu", "latency_cpu"):
        for matrix in told[key].values():
            assert matrix == [list(column) for column in zip(*matrix, strict=True)]  # this mesh is symmetric
    for row in range(8):
        for column in range(8):
            once, twice = one_way["on"][row][column], both_ways["on"][row][column]
            assert (once is None) == (twice is None) == (not told["connectivity"][row][column])
            assert twice is None or once * (1 - 1e-9) <= twice <= 2 * once * (1 + 1e-9)
    gpus = range(8)
    for matrix in (one_way["off"], both_ways["off"], told["latency_gpu"]["off"], told["latency_cpu"]["off"]):
        assert all(isinstance(matrix[row][column], float) for row in gpus for column in gpus)


def test_every_matrix_beside_the_recorded_one(run: Run, tmp_path: Path) -> None:
    """Copies without peer access are the driver's own there: slower than the pipeline through pinned memory."""
    told = report(run, tmp_path, "recorded-4xh200")
    recorded = json.loads((MACHINES / "recorded-4xh200/peers.json").read_text())
    most = {
        ("one_way", "on"): 0.02, ("one_way", "off"): 0.4, ("both_ways", "on"): 0.02, ("both_ways", "off"): 0.45,
        ("latency_gpu", "on"): 0.25, ("latency_gpu", "off"): 0.3, ("latency_cpu", "on"): 0.1,
        ("latency_cpu", "off"): 0.25,
    }  # fmt: skip
    for (key, access), error in most.items():
        for row, column in itertools.permutations(range(4), 2):
            found, there = told[key][access][row][column], recorded[key][access][row][column]
            assert found == pytest.approx(there, rel=error), (key, access, row, column)


def test_a_machine_with_one_gpu_has_one_cell(run: Run, tmp_path: Path) -> None:
    told = report(run, tmp_path, "remote-t4")
    assert told["connectivity"] == [[True]] and told["one_way"]["off"] == told["one_way"]["on"] != [[None]]


def test_the_tables_say_that_they_are_simulated(run: Run, tmp_path: Path) -> None:
    code, out, err = run("measure", "--peers", "--machine", "lassen", "-r", str(tmp_path))
    assert code == 0, err
    assert "SIMULATED" in out and "Bandwidth both ways" in out and "not known for" in out


def test_a_machine_without_gpus_has_no_report(run: Run, tmp_path: Path) -> None:
    machine = tmp_path / "none.json"
    assert run("machine", "new", "--cpus", "1x8480C", "--nics", "1xCX7", "--out", str(machine))[0] == 0
    code, out, err = run("measure", "--peers", "--machine", str(machine), "-r", str(tmp_path / "results"))
    assert (code, out) == (2, "") and "has no GPU" in err
