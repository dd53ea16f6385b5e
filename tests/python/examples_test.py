"""Each example is run and its output compared."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from rank_jobs import HAS_TORCH, ROOT, TORCHRUN, example, runtime_folder

__all__ = ["runtime_folder"]
BUILT = ROOT / "build" / "examples"

ROW = {
    "pairs": [["host0", "host0"]],
    "processes": 1,
    "operation": "latency",
    "from_bytes": 0,
    "to_bytes": 1 << 40,
    "path": {
        "mechanism": "host_copy",
        "source": "host0",
        "destination": "host0",
        "processes": 1,
        "parameters": {"stores": "temporal", "threads": "2"},
    },
    "expected": [],
    "runner_up": None,
    "why": "made by hand",
}
PLAN = {
    "schema": "waywiser.plan",
    "version": 1,
    "fingerprint": "none",
    "machine": "made up",
    "backend": "host",
    "simulated": False,
    "rows": [ROW],
}


def run(name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([BUILT / name, *arguments], capture_output=True, text=True, timeout=60, check=False)


def test_choose_and_copy(tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps(PLAN))
    done = run("07_choose_and_copy", str(plan), "3M")
    assert (done.returncode, done.stdout, done.stderr) == (0, "3M bytes by host_copy: intact\n", "")


@pytest.mark.parametrize(
    ("plan", "words"),
    [("{", "not JSON"), (json.dumps(PLAN | {"version": 2}), "version 2"), (json.dumps(PLAN | {"rows": []}), "no path")],
)
def test_choose_and_copy_refuses_a_bad_plan(tmp_path: Path, plan: str, words: str) -> None:
    file = tmp_path / "plan.json"
    file.write_text(plan)
    done = run("07_choose_and_copy", str(file))
    assert done.returncode == 2
    assert words in done.stderr and done.stderr.count("\n") == 1


def test_hello() -> None:
    lines = [f"rank {rank} of 3: hello from rank {(rank + 2) % 3}" for rank in range(3)]
    assert example(3, "01_hello.py") == (0, lines, "")


def test_send_gpu_arrays() -> None:
    lines = [
        "rank 0 got [1.0, 2.0, 3.0]",
        "rank 0 heard from rank 1",
        "rank 1 got [0.0, 1.0, 2.0]",
        "rank 1 got a matrix of sum 15 on gpu1",
        "rank 1 heard from rank 0",
    ]
    assert example(2, "02_send_gpu_arrays.py") == (0, lines, "")


def test_all_reduce() -> None:
    assert example(4, "03_all_reduce.py") == (0, ["y = 3.000 x -1.000; equal on all ranks: True"], "")


def has_cuda() -> bool:
    if not HAS_TORCH:
        return False
    import torch

    return bool(torch.cuda.is_available())


def test_graph_capture() -> None:
    code, lines, errors = example(4, "04_graph_capture.py")
    assert (code, errors, len(lines)) == (0, "", 1)
    if has_cuda():
        assert lines == ["after 50 all-reduces in 5 replays: 10.000"]
    else:
        assert lines[0].startswith("a CUDA graph needs an NVIDIA GPU and PyTorch: ")


@pytest.mark.parametrize("ranks", [1, 3])
def test_neighbour_exchange(ranks: int) -> None:
    lines = ["after 200 steps: 981.935340 of 1000 are left, the warmest point has 1.985707"]
    assert example(ranks, "05_neighbour_exchange.py") == (0, lines, "")


def test_torch() -> None:
    command = [*TORCHRUN, "--nproc-per-node", "2"] if HAS_TORCH else [sys.executable]
    done = subprocess.run(
        [*command, ROOT / "examples" / "06_torch.py"], capture_output=True, text=True, timeout=200, check=False
    )
    expected = "y = 3.000 a -2.000 b +1.000; equal on all 2 ranks: True\n"
    assert done.returncode == 0, done.stderr
    assert done.stdout == (expected if HAS_TORCH else "this example needs PyTorch: pip install torch\n")
