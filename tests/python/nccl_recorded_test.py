"""What NCCL chose, and how long its rings took, beside a simulation from the machine's parts: 2 x H200, no NVLS."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import median
from typing import Any

import pytest
from verb_runs import Run

pytestmark = pytest.mark.slow
RESULTS = Path(__file__).parents[2] / "benchmarks/results"
RECORDED = json.loads((RESULTS / "nccl-rings-2xh200.json").read_text())
OPERATIONS = ("all_reduce", "all_gather", "reduce_scatter")


@pytest.fixture
def machine(run: Run, tmp_path: Path) -> str:
    file = str(tmp_path / "two.json")
    parts = ["--gpus", "2xH200", "--nvswitch", "--cpus", "2x8480C"]
    assert run("machine", "new", *parts, "--name", "two", "--out", file)[0] == 0
    return file


def simulated(run: Run, machine: str, operation: str, *words: str) -> dict[int, dict[str, Any]]:
    sizes = ",".join(str(row["bytes"]) for row in RECORDED["rows"] if row["operation"] == operation)
    status, out, _ = run(
        "simulate", operation, "--machine", machine, "--nodes", "1", "--sizes", sizes, *words, "--json"
    )
    assert status == 0
    return {case["size"]: case for case in json.loads(out)["cases"]}


def test_nccl_chooses_as_recorded(run: Run, machine: str) -> None:
    told = {(one["operation"], one["bytes"]): one for one in RECORDED["choices"]}
    right, all_of = 0, 0
    for operation in OPERATIONS:
        for size, case in simulated(run, machine, operation, "--algorithms", "nccl").items():
            if (operation, size) in told:
                one, chosen = told[operation, size], case["chosen"]
                same = (f"nccl_{one['algorithm'].lower()}", one["protocol"].lower())
                right += (chosen["algorithm"], chosen["protocol"].lower()) == same
                all_of += 1
    assert all_of >= 70 and right >= 0.9 * all_of, (right, all_of)


def launch_of_pytorch() -> float:
    """kernel.issue of a call in PyTorch's graphs, by a recording of another day: 1 KiB by LL, less what the model has
    for the end of a kernel and for two steps."""
    told = json.loads((RESULTS / "torch-2xh200.json").read_text())["rows"]
    (call,) = (row["us"]["NCCL graph"] for row in told if row["bytes"] == 1024)
    return float(call) * 1e-6 - 3e-6 - 2 * 0.6e-6


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("protocol", ["LL", "LL128", "Simple"])
def test_rings_take_as_long_as_recorded(run: Run, machine: str, protocol: str, operation: str) -> None:
    settings = ("--set", f"protocol={protocol}", "--set", f"kernel.issue={launch_of_pytorch()}")
    errors = []
    for size, case in simulated(run, machine, operation, "--algorithms", "nccl_ring", *settings).items():
        row = next(r for r in RECORDED["rows"] if (r["operation"], r["bytes"]) == (operation, size))
        assert row["verified"]
        errors.append(abs(case["seconds"] / row["seconds"][protocol] - 1))
    assert len(errors) == 26 and median(errors) < 0.1 and max(errors) < 0.35
