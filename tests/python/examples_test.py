"""Each example is run and its output compared."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "build" / "examples"

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
    return subprocess.run([EXAMPLES / name, *arguments], capture_output=True, text=True, timeout=60, check=False)


def test_choose_and_copy(tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps(PLAN))
    done = run("01_choose_and_copy", str(plan), "3M")
    assert (done.returncode, done.stdout, done.stderr) == (0, "3M bytes by host_copy: intact\n", "")


@pytest.mark.parametrize(
    ("plan", "words"),
    [("{", "not JSON"), (json.dumps(PLAN | {"version": 2}), "version 2"), (json.dumps(PLAN | {"rows": []}), "no path")],
)
def test_choose_and_copy_refuses_a_bad_plan(tmp_path: Path, plan: str, words: str) -> None:
    file = tmp_path / "plan.json"
    file.write_text(plan)
    done = run("01_choose_and_copy", str(file))
    assert done.returncode == 2
    assert words in done.stderr and done.stderr.count("\n") == 1
