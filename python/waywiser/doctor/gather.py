"""Gathers the reports of all ranks at rank 0: over the network as groups do, else through a shared folder."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path

from waywiser import _core
from waywiser.doctor.report import SCHEMA, VERSION, Report, read_report
from waywiser.errors import InputError
from waywiser.files import parse_json, read_json, write_text_atomically
from waywiser.look.job import Job
from waywiser.progress import say

_REST = 0.05


def gather_reports(report: Report, job: Job, folder: Path | None, seconds: float) -> list[Report] | None:
    """All reports by rank at rank 0, None at the others; through `folder` if one is given. Raises InputError."""
    if folder is None and (why := _why_no_meeting()):
        if job.rank == 0:
            say(f"gathered through files in {Path.cwd()}: {why}")
        folder = Path.cwd()
    return _by_folder(report, job, folder, seconds) if folder else _by_meeting(report, seconds)


def _why_no_meeting() -> str:
    """Why the ranks cannot meet over the network; the same at all ranks. Empty if they can."""
    try:
        _core.seat()
    except _core.Error as error:
        return str(error)
    return ""


def _by_meeting(report: Report, seconds: float) -> list[Report] | None:
    texts = _core.gather_texts(report.to_json(), seconds)
    found = []
    for rank, text in enumerate(texts):
        what = f"report of rank {rank}"
        found.append(read_report(parse_json(text.encode(), what, SCHEMA, VERSION), what))
    return found or None


def _by_folder(report: Report, job: Job, folder: Path, seconds: float) -> list[Report] | None:
    """Raises InputError with the missing ranks."""
    place = folder / f".waywiser-doctor-{job.name}"
    if job.rank:
        write_text_atomically(place / f"{job.rank}.json", report.to_json())
        return None
    found: dict[int, Report] = {0: report}
    deadline = time.monotonic() + seconds
    while len(found) < job.size:
        for rank in range(1, job.size):
            file = place / f"{rank}.json"
            if rank not in found and file.exists():
                found[rank] = read_report(read_json(file, SCHEMA, VERSION), str(file))
        if len(found) < job.size:
            if time.monotonic() > deadline:
                raise InputError(_missing(found, job, place, seconds))
            time.sleep(_REST)
    _remove(place, job.size)
    return [found[rank] for rank in range(job.size)]


def _missing(found: dict[int, Report], job: Job, place: Path, seconds: float) -> str:
    absent = [str(rank) for rank in range(job.size) if rank not in found]
    listed = ", ".join(absent[:8]) + (" ..." if len(absent) > 8 else "")
    return (
        f"no report of rank {listed} in {place} within {seconds:.0f} s: "
        "name a folder that all nodes see with --gather DIR, or use --alone --json and --compare"
        + (f"; {job.claim}" if job.claim else "")
    )


def _remove(place: Path, size: int) -> None:
    with contextlib.suppress(OSError):
        for rank in range(1, size):
            (place / f"{rank}.json").unlink(missing_ok=True)
        place.rmdir()
