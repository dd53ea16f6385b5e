"""`waywiser bench sharing`: halo exchanges of several processes on one GPU, by three variants, without and with MPS."""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from waywiser.bench.started_ranks import STARTING, answer_of, reason_in
from waywiser.errors import TransferError, UnavailableError

if TYPE_CHECKING:
    from waywiser.stages import Show

VARIANTS = ("whole_field", "per_neighbor", "packed")
MOST = 8  # processes
_CELLS, _FIELDS = (96, 96, 96), 4  # of all processes together
_SMALL_CELLS = (16, 16, 16)  # on virtual GPUs, which are slow
_CONTROL = "nvidia-cuda-mps-control"
_PATIENCE = 60.0  # seconds for a command of MPS, and for its first client
_CLIENT = "from waywiser.group.gpus import cuda_gpus; cuda_gpus().empty(1)"
_COLUMNS = ("mps", "processes", "variant", "us", "label")


@dataclass(frozen=True)
class Point:
    """So many processes on the GPU, with MPS or without. `seconds`: of an exchange by each variant, the median of the
    samples at the slowest process."""

    mps: bool
    processes: int
    seconds: Mapping[str, float]
    samples: int

    @property
    def name(self) -> str:
        """ "2 processes, with MPS"."""
        return f"{self.processes} process{'es' if self.processes > 1 else ''}, {'with' if self.mps else 'without'} MPS"

    @property
    def fastest(self) -> str:
        """A variant; empty if none could be timed."""
        return min(self.seconds, key=lambda variant: self.seconds[variant], default="")


@dataclass(frozen=True)
class Wanted:
    """`virtual`: on a virtual GPU, of which nothing but the results mean anything. `budget` in seconds."""

    virtual: bool
    most: int
    budget: float


def points(wanted: Wanted, folder: Path, missing: Callable[[str, str], None], show: Show) -> Iterator[Point]:
    """Measures each number of processes without MPS, then with. What cannot be timed goes to `missing`."""
    rounds = [(mps, processes) for mps in (False, True) for processes in range(1, wanted.most + 1)]
    share = wanted.budget / len(rounds)
    for mps in (False, True):
        try:
            with _without_mps(folder) if not mps else _with_mps(wanted, folder) as environment:
                for processes in range(1, wanted.most + 1):
                    done = rounds.index((mps, processes))
                    show(done, len(rounds), share * (len(rounds) - done), f"{processes} on one GPU")
                    try:
                        point = _timed(wanted, mps, processes, share, environment, missing)
                    except TransferError as error:
                        missing(Point(mps, processes, {}, 0).name, str(error))
                        if not mps:
                            continue
                        if processes < wanted.most:
                            missing("more processes, with MPS", "a program that failed leaves MPS of no use for others")
                        break
                    yield point
        except UnavailableError as error:
            missing("with MPS", str(error))
    show(len(rounds), len(rounds), 0.0, "")


@contextmanager
def _without_mps(folder: Path) -> Iterator[dict[str, str]]:
    """No daemon listens there, also where one of the machine does."""
    yield _on_one_gpu() | {"CUDA_MPS_PIPE_DIRECTORY": str(folder / "nobody")}


@contextmanager
def _with_mps(wanted: Wanted, folder: Path) -> Iterator[dict[str, str]]:
    """A daemon of our own. Raises UnavailableError."""
    if wanted.virtual:
        raise UnavailableError("virtual GPUs have no MPS")
    if shutil.which(_CONTROL) is None:
        raise UnavailableError(f"{_CONTROL} is not installed")
    (folder / "mps").mkdir()
    environment = _on_one_gpu() | dict.fromkeys(("CUDA_MPS_PIPE_DIRECTORY", "CUDA_MPS_LOG_DIRECTORY"), f"{folder}/mps")
    _control(environment, "-d")
    try:
        _meet(environment, folder / "mps")
        yield environment
    finally:
        _control(environment, told="quit\n")


def _control(environment: Mapping[str, str], *words: str, told: str = "") -> None:
    # A daemon with CUDA_VISIBLE_DEVICES gives GPUs other numbers, so it has all, and its clients choose.
    whole = {name: value for name, value in environment.items() if name != "CUDA_VISIBLE_DEVICES"}
    try:
        done = subprocess.run(
            [_CONTROL, *words], env=whole, input=told, capture_output=True, text=True, timeout=_PATIENCE
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UnavailableError(f"{_CONTROL} does not answer: {error}") from error
    if done.returncode:
        said = " ".join((done.stdout + done.stderr).split())
        raise UnavailableError(f"{_CONTROL} failed ({done.returncode}): {said[:200]}")


def _meet(environment: Mapping[str, str], logs: Path) -> None:
    """A first client, since one that MPS does not serve waits for ever. Raises UnavailableError."""
    try:
        done = subprocess.run(
            [sys.executable, "-c", _CLIENT],
            env=dict(environment), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_PATIENCE,
        )  # fmt: skip
        why = "" if done.returncode == 0 else reason_in(done.stderr) or f"exit code {done.returncode}"
    except subprocess.TimeoutExpired:
        why = f"no answer within {_PATIENCE:.0f} s"
    if why:
        last = [text for file in ("control.log", "server.log") if (text := _last_line(logs / file))]
        raise UnavailableError("; ".join([f"MPS serves no program: {why}", *last]))


def _last_line(file: Path) -> str:
    """With the file's name; empty if there is none."""
    try:
        lines = file.read_text(errors="replace").split("\n")
    except OSError:
        return ""
    told = " ".join(next((line for line in reversed(lines) if line.strip()), "").split())
    return f"{file.name}: {told[:200]}" if told else ""


def _on_one_gpu() -> dict[str, str]:
    """Our variables, with the first GPU that is visible, and no job around."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("WAYWISER_RANK", "CUDA_MPS_"))}
    return kept | {"CUDA_VISIBLE_DEVICES": os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0] or "0"}


def _timed(
    wanted: Wanted,
    mps: bool,
    processes: int,
    seconds: float,
    environment: Mapping[str, str],
    missing: Callable[[str, str], None],
) -> Point:
    """Starts the processes. Raises TransferError."""
    order = {
        "virtual": wanted.virtual, "cells": _SMALL_CELLS if wanted.virtual else _CELLS, "fields": _FIELDS,
        "variants": VARIANTS, "seconds": seconds, "timeout": STARTING,
    }  # fmt: skip
    found = answer_of("waywiser.bench.sharing_rank", processes, order, environment, seconds, "seconds")
    point = Point(mps, processes, found["seconds"], found["samples"])
    for variant, why in found["left_out"].items():
        missing(f"{variant}, {point.name}", why)
    return point


def tables(found: Sequence[Point], label: str) -> list[str]:
    """A line for each number of processes, without MPS and with: microseconds by variant."""
    lines = [f"# us of a halo exchange by processes that share one GPU{label}"]
    lines.append(f"{'# MPS':<8}{'processes':>9}" + "".join(f"{one:>14}" for one in VARIANTS) + "   fastest")
    for one in found:
        cells = (f"{one.seconds[each] * 1e6:.4g}" if each in one.seconds else "-" for each in VARIANTS)
        row = "".join(f"{cell:>14}" for cell in cells)
        lines.append(f"{'on' if one.mps else 'off':<8}{one.processes:>9}{row}   {one.fastest or '-'}")
    return lines if found else []


def as_json(found: Sequence[Point], backend: str, warning: str, left_out: dict[str, str]) -> str:
    """All points, as a document."""
    value: dict[str, Any] = {"schema": "waywiser.sharing", "version": 1, "backend": backend}
    if warning:
        value |= {"simulated": True, "warning": warning}
    rows = [
        {"mps": one.mps, "processes": one.processes, "fastest": one.fastest or None, "samples": one.samples,
         "us": {each: seconds * 1e6 for each, seconds in one.seconds.items()}}
        for one in found
    ]  # fmt: skip
    return json.dumps({**value, "left_out": left_out, "rows": rows}, indent=1)


def as_csv(found: Sequence[Point], warning: str) -> str:
    """A line for each time."""
    text = io.StringIO()
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow(_COLUMNS)
    for one in found:
        for variant, seconds in one.seconds.items():
            lines.writerow(("on" if one.mps else "off", one.processes, variant, f"{seconds * 1e6:.5g}", warning))
    return text.getvalue()
