"""Plans for NCCL, and the program that does with the tuner what NCCL does (tests/nccl/made_up_nccl.c)."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rank_jobs import ROOT

import waywiser
from waywiser import _core

PLUGINS = Path(waywiser.__file__).parent / "nccl"
TUNER, ENVIRONMENT = PLUGINS / "libnccl-tuner-waywiser.so", PLUGINS / "libnccl-env-waywiser.so"
VERSIONS = (4, 5, 6, 7)
NO_END = (1 << 63) - 1
PATIENCE = 60.0
Row = tuple[str, int, int, str]  # operation, from, to, way


class Answer(NamedTuple):
    """Exit code, the lines of the program, what the plug-in has said."""

    code: int
    lines: list[str]
    said: list[str]


def program(folder: Path, source: str = "made_up_nccl.c") -> Path:
    made = folder / Path(source).stem
    words = ["cc", "-Wall", "-Wextra", "-Werror", "-rdynamic", str(ROOT / "tests/nccl" / source), "-o", str(made)]
    subprocess.run([*words, "-ldl"], check=True)
    return made


def plan(rows: Sequence[Row], ranks: int = 2, version: str = "2.27.5", **head: Any) -> str:
    """A plan for this machine with these rows for NCCL."""
    about = {"schema": "waywiser.plan", "version": 3, "fingerprint": _core.discover().fingerprint, "machine": "made up"}
    found = [
        {"operation": operation, "memory": "gpu", "ranks": ranks, "partner": f"NCCL {version}", "from_bytes": first,
         "to_bytes": last, "ways": [{"way": way, "ratio": 1}], "expected": [], "why": "made up"}
        for operation, first, last, way in rows
    ]  # fmt: skip
    return json.dumps({**about, "backend": "cuda", "simulated": False, "other_nodes": [], "rows": found, **head})


def given(file: Path, text: str) -> dict[str, str]:
    """Writes the plan; the variable that a launcher gives to every rank."""
    file.write_text(text)
    return {"WAYWISER_NCCL_PLAN": f"{_core.plan_hash(text, 'NCCL')}:{file}"}


def ask(
    made: Path, version: int, variables: Mapping[str, str], lines: Sequence[str] = (), ranks: int = 2, nodes: int = 1
) -> Answer:
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("NCCL_", "WAYWISER_NCCL"))}
    done = subprocess.run(
        [made, TUNER, str(version), str(ranks), str(nodes)], input="\n".join(lines), env=clean | dict(variables),
        capture_output=True, text=True, timeout=PATIENCE, check=False,
    )  # fmt: skip
    return Answer(done.returncode, done.stdout.splitlines(), done.stderr.splitlines())
