"""Jobs of several ranks, for tests: started by `waywiser run`, by mpirun, by torchrun."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
COMMAND = [sys.executable, "-c", "from waywiser.cli import main; main()"]
PROGRAM = "import os, signal, sys, numpy as np, waywiser as ww\ngroup = ww.join()\n"
HAS_TORCH = importlib.util.find_spec("torch") is not None
HAS_MPI4PY = importlib.util.find_spec("mpi4py") is not None


def with_options(mpirun: str) -> list[str]:
    """With what it needs here to start more ranks than cores, also as root."""
    version = subprocess.run([mpirun, "--version"], capture_output=True, text=True, check=False).stdout
    if "Open MPI" not in version:
        return [mpirun]
    return [mpirun, "--oversubscribe"] + (["--allow-run-as-root"] if os.geteuid() == 0 else [])


def _mpirun() -> list[str]:
    """The mpirun beside this Python, from the wheel that mpi4py finds, else that of PATH; empty if there is none."""
    beside = Path(sys.executable).with_name("mpirun")
    mpirun = str(beside) if beside.exists() else shutil.which("mpirun")
    return [] if mpirun is None else with_options(mpirun)


MPIRUN = _mpirun()
# Said once by a group with GPU arrays on a machine that is not tuned.
NO_PLAN = "waywiser: no plan: GPU memory goes by kernels and copy engines; `waywiser tune` finds better ways\n"
TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone"]


@pytest.fixture(autouse=True)
def runtime_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the jobs of a test meet; import it into the module of the tests. Away from what `make tune` left here."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "runtime"
    monkeypatch.setenv("WAYWISER_RUNTIME_DIR", str(folder))
    more = os.environ.get("PYTHONPATH")
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "python") + (os.pathsep + more if more else ""))
    return folder


def start(*arguments: str | Path) -> subprocess.Popen[str]:
    """`waywiser ARGUMENT...`."""
    return subprocess.Popen([*COMMAND, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finish(process: subprocess.Popen[str]) -> tuple[int, list[str], str]:
    """Exit code, sorted lines of output, errors."""
    out, err = process.communicate(timeout=100)
    return process.returncode, sorted(out.splitlines()), err


def run(ranks: int, code: str, *options: str, program: str = PROGRAM) -> tuple[int, list[str], str]:
    """The ranks run `code`, after having joined."""
    program = program + textwrap.dedent(code)
    return finish(start("run", "-n", str(ranks), *options, sys.executable, "-c", program))


def example(ranks: int, name: str, *arguments: str) -> tuple[int, list[str], str]:
    return finish(start("run", "-n", str(ranks), sys.executable, EXAMPLES / name, *arguments))


def wait_for_status(process: int, words: str) -> list[dict[str, object]]:
    """The ranks of a job, as soon as one is in a call with these words."""
    end_by = time.monotonic() + 60
    command = [*COMMAND, "status", str(process), "--json"]
    while time.monotonic() < end_by:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode == 0 and words in done.stdout:
            ranks: list[dict[str, object]] = json.loads(done.stdout)
            return ranks
    raise AssertionError(f"no rank was in {words}")
