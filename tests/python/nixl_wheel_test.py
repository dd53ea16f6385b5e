"""The back end inside NIXL itself; `scripts/test_nixl` provides it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from rank_jobs import ROOT

from waywiser.nixl_folder import SWITCH

PYTHON = os.environ.get("WAYWISER_NIXL_PYTHON", "")
PATIENCE = 300.0
CASES = ("between_processes", "prepared_lists", "within_an_agent", "other_machine", "both_back_ends", "death")

pytestmark = pytest.mark.skipif(not PYTHON, reason="scripts/test_nixl gives a Python with NIXL")


@pytest.fixture(scope="module")
def switched_on(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment that the printed lines make."""
    folder = tmp_path_factory.mktemp("nixl")
    found = subprocess.run(
        [PYTHON, "-c", "import nixl_cu13; print(nixl_cu13.__file__)"], capture_output=True, text=True
    )
    libraries = Path(found.stdout.strip()).parents[1] / ".nixl_cu13.mesonpy.libs"
    words = [".venv/bin/python", "-m", "waywiser.nixl_folder", str(folder / "links"), "--nixl", str(libraries)]
    told = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    lines = dict(line.removeprefix("export ").split("=", 1) for line in told.splitlines())
    return {**os.environ, SWITCH: lines[SWITCH]}


@pytest.mark.parametrize("case", CASES)
def test_it_works_inside_nixl(case: str, switched_on: dict[str, str]) -> None:
    words = [PYTHON, str(ROOT / "tests/nixl/wheel_agents.py"), case]
    done = subprocess.run(words, env=switched_on, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0 and done.stdout.splitlines()[-1] == "right", done.stdout + done.stderr
    ours = [line for line in done.stderr.splitlines() if line.startswith("waywiser:")]
    told = ["waywiser: NIXL: agent target is left to NIXL's other back ends: it is on another machine"]
    assert ours == (told if case == "other_machine" else []) or case == "death", ours
