"""The plan that chooses ways to files where a program names none: of WAYWISER_PLAN, else of the folder of results."""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path

from waywiser import _core
from waywiser.results import DEFAULT


def usual_file() -> Path:
    """The plan in which `waywiser tune --storage` keeps ways to files, and programs look for them."""
    named = os.environ.get("WAYWISER_PLAN")
    return Path(named) if named else Path(os.environ.get("WAYWISER_RESULTS") or DEFAULT) / "plan.json"


def file_plan(plan: str | os.PathLike[str] | None) -> _core.FilePlan:
    """The rows about files of `plan`, else of the usual one; none if there is no such file. Raises InputError."""
    file = Path(plan) if plan is not None else usual_file()
    try:
        about = file.stat()
    except OSError:
        return _core.FilePlan.of(str(file)) if plan is not None else _core.FilePlan()
    return _read(str(file), about.st_mtime_ns, about.st_size)


@lru_cache(maxsize=4)
def _read(file: str, _changed: int, _size: int) -> _core.FilePlan:
    return _core.FilePlan.of(file)
