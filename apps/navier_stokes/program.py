"""Finds the built program and runs it as ranks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
NO_RESULT = 3  # the program's exit code
LAUNCHER = [sys.executable, "-c", "from waywiser.cli import main; main()", "run"]


class RunError(Exception):
    """The program is missing, or a run has failed; the text says why in one line."""

    exit_code = 2


class NoResultError(RunError):
    """The flow has blown up, is unconverged or unresolved, as the program has said."""

    exit_code = NO_RESULT


def find_program(gpu: bool = False) -> Path:
    """The program that the build has made, in host memory or on GPUs."""
    program = ROOT / "build/apps" / ("navier_stokes_cuda" if gpu else "navier_stokes")
    if not program.exists():
        raise RunError(f"there is no {program}: build it with `make test-slow`" + (", WAYWISER_CUDA=ON" if gpu else ""))
    return program


def run(program: Path, ranks: int, **options: object) -> dict[str, Any]:
    """Runs the program by `waywiser run` and returns its report; `options` are the program's."""
    words = [word for name, value in options.items() for word in (f"--{name}", str(value))]
    environment = dict(os.environ)
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT / "python"), environment.get("PYTHONPATH")]))
    command = [*LAUNCHER, "-n", str(ranks), str(program), *words]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, env=environment, check=False)
    if done.returncode == NO_RESULT:
        raise NoResultError(f"{program.name} {' '.join(words)}: {json.loads(done.stdout)['reason']}")
    if done.returncode != 0:
        raise RunError(f"{program.name} {' '.join(words)}: exit code {done.returncode}")
    report = json.loads(done.stdout)
    assert isinstance(report, dict)
    return report
