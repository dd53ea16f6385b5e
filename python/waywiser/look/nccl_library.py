"""Finds libnccl, and whether it can be used here."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from waywiser.look.answers import answer_in, give_answer
from waywiser.look.cuda_driver import gpu_count
from waywiser.look.installed_libraries import installed
from waywiser.look.root import Root

_PATIENCE = 60.0


def find_libnccl() -> str:
    """WAYWISER_LIBNCCL, else the first copy in LD_LIBRARY_PATH, the system and wheels, else the loader's."""
    return os.environ.get("WAYWISER_LIBNCCL") or next(iter(installed(Root(), "libnccl")), "libnccl.so.2")


def open_libnccl() -> object:
    return ctypes.CDLL(find_libnccl())


@dataclass(frozen=True)
class Found:
    """What ranks of such a library find: the number of GPUs, or why there are none; why there is no library."""

    gpus: int
    no_gpus: str
    no_library: str

    def too_few(self, ranks: int) -> str:
        """Why there is not a GPU for each of `ranks` ranks; empty if there is."""
        return self.no_gpus or (
            "" if self.gpus >= ranks else f"{ranks} ranks need a GPU each, and there are {self.gpus}"
        )

    def why_not(self, ranks: int) -> str:
        """What is missing for this many ranks; empty if they can start."""
        return self.too_few(ranks) or self.no_library


def look_for_nccl() -> Found:
    return look_for(__name__, open_libnccl.__name__)


def look_for(module: str, opener: str) -> Found:
    """Asks in a separate process, since an opened driver stays open. `opener` raises OSError."""
    question = f"from waywiser.look.nccl_library import answer; from {module} import {opener}; answer({opener})"
    path = os.pathsep.join(filter(None, (str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH"))))
    try:
        done = subprocess.run(
            [sys.executable, "-c", question], env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True,
            errors="replace", timeout=_PATIENCE,
        )  # fmt: skip
        return Found(**answer_in(done.stdout))
    except subprocess.TimeoutExpired:
        return Found(0, f"the driver did not answer within {_PATIENCE:.0f} s", "")
    except (ValueError, TypeError):
        return Found(0, f"the question about GPUs failed ({done.returncode}): {done.stderr.strip()[-200:]}", "")


def answer(open_library: Callable[[], object]) -> None:
    """Prints the answer."""
    found: dict[str, int | str] = {"gpus": 0, "no_gpus": "", "no_library": ""}
    try:
        found["gpus"] = gpu_count()
    except RuntimeError as error:
        found["no_gpus"] = " ".join(str(error).split())
    try:
        open_library()
    except OSError as error:
        found["no_library"] = " ".join(str(error).split())
    give_answer(found)
