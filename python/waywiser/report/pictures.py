"""The plots of the report as PNG files."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from waywiser.files import write_bytes_atomically
from waywiser.profile import OPERATIONS, Profile
from waywiser.report.curves import all_curves
from waywiser.report.drawing import drawing_bytes
from waywiser.report.figures import curve_picture, matrix_picture
from waywiser.report.matrices import matrices
from waywiser.results import Results

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MANY_CLASSES = 12  # above this number: only latency and streaming, as each picture takes a quarter of a second
_ENOUGH_FOR_A_HELPER = 4  # pictures: a helper starts in a second and takes a quarter of a second for each
_PATIENCE = 120.0  # seconds for a helper


def _save(figure: Figure, file: Path) -> Path:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png")
    write_bytes_atomically(file, buffer.getvalue())
    return file


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower().replace(">", "-to-")).strip("-")[:80] or "plot"


def _pictures(profile: Profile, results: Results) -> Iterator[tuple[str, Callable[[], Figure]]]:
    """The name and the drawing function of each picture."""
    heading = " - ".join(part for part in (profile.machine, profile.created[:10], profile.warning().upper()) if part)
    for processes in (1, 2):
        for matrix in matrices(profile, results.plan, processes):
            yield (
                f"matrix-{_slug(matrix.title)}-{processes}",
                partial(matrix_picture, matrix, f"{heading} - {processes} process{'es' * (processes - 1)}"),
            )
    groups = all_curves(profile, results.plan)
    wanted = OPERATIONS if len(groups) <= _MANY_CLASSES else ("latency", "streaming")
    for group in groups:
        for operation in (one for one in wanted if one in group["operations"]):
            yield f"{_slug(group['title'])}-{operation}", partial(curve_picture, group, operation, heading)


def _by_file(results: Results, folder: Path) -> dict[Path, Callable[[], Figure]]:
    drawings: dict[Path, Callable[[], Figure]] = {}
    for name, draw in _pictures(results.needed_profile(), results):
        file = folder / f"{name}.png"
        while file in drawings:
            file = file.with_stem(file.stem + "-2")
        drawings[file] = draw
    return drawings


def write_pictures(results: Results, folder: Path) -> list[Path]:
    """Writes the PNG files into `folder` and returns them. Raises InputError if it cannot.

    Many pictures are shared out to helper processes, one per CPU; pictures that a helper did not draw are drawn here.
    """
    drawings = _by_file(results, folder)
    files = list(drawings)
    shares = max(1, min(len(os.sched_getaffinity(0)), len(files) // _ENOUGH_FOR_A_HELPER))
    helpers = [_helper(results, folder, share, shares) for share in range(1, shares)]
    try:
        if results.topology is not None:
            write_bytes_atomically(folder / "machine.png", drawing_bytes(results.topology, format="png"))
        _draw(drawings, files[::shares])
        for share, helper in enumerate(helpers, 1):
            if not _done(helper):
                _draw(drawings, files[share::shares])
    finally:
        for helper in helpers:
            if helper is not None:
                helper.kill()
                helper.wait()
    return [*files, folder / "machine.png"] if results.topology is not None else files


def _draw(drawings: dict[Path, Callable[[], Figure]], files: list[Path]) -> None:
    for file in files:
        _save(drawings[file](), file)


def _helper(results: Results, folder: Path, share: int, shares: int) -> subprocess.Popen[bytes] | None:
    arguments = [str(results.folder.resolve()), results.name, str(folder.resolve()), str(share), str(shares)]
    script = "import sys; from waywiser.report.pictures import help_to_draw; help_to_draw(*sys.argv[1:])"
    try:
        return subprocess.Popen(
            [sys.executable, "-c", script, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=Path(__file__).parents[2],  # so that it imports this package
        )
    except OSError:
        return None


def _done(helper: subprocess.Popen[bytes] | None) -> bool:
    try:
        return helper is not None and helper.wait(_PATIENCE) == 0
    except subprocess.TimeoutExpired:
        return False


def help_to_draw(results: str, name: str, folder: str, share: str, shares: str) -> None:
    """In a helper of `write_pictures`: draws picture `share` and every `shares`-th after it."""
    drawings = _by_file(Results(Path(results), name), Path(folder))
    _draw(drawings, list(drawings)[int(share) :: int(shares)])
