"""What measured gains are worth: GPU-hours a year, from a table of jobs. Every assumption is told."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from waywiser.checked import clean
from waywiser.errors import InputError

_YEAR = 365.25 * 24 * 3600
_MOST_ROWS = 5_000_000
_COLUMNS = {
    "JobID", "NodeType", "Partition", "GPUHours", "AllocTRES", "ElapsedRaw", "Elapsed", "CommShare", "Start", "End",
}  # fmt: skip
_GPUS = re.compile(r"gres/gpu(?::[\w.-]{1,40})?=(\d{1,6})")
_ELAPSED = re.compile(r"(?:(\d{1,4})-)?(\d{1,3}):(\d{2}):(\d{2})")


@dataclass(frozen=True)
class Job:
    """GPU-hours of a job on one node type, and the part of its time in communication (None: not told)."""

    node_type: str
    gpu_hours: float
    share: float | None
    start: datetime | None
    end: datetime | None


@dataclass(frozen=True)
class Saving:
    """GPU-hours of a node type in the table, saved in it, and saved in a year of such use."""

    node_type: str
    gpu_hours: float
    gain: float
    saved: float
    saved_a_year: float


def read_jobs(text: str, what: str) -> list[Job]:
    """A table with a head line, separated by "|" (sacct --parsable2) or commas. Raises InputError with the line.

    Columns: NodeType or Partition; GPUHours, or AllocTRES with ElapsedRaw or Elapsed; CommShare (0 to 1), Start and
    End where they are there. Steps of a job ("123.0", "123.batch") are passed over: the job's line holds them.
    """
    first = text.partition("\n")[0]
    rows = csv.reader(io.StringIO(text), delimiter="|" if "|" in first else ",")
    try:
        columns = _columns(next(rows, []), what)
        return [_job(cells) for row in rows if (cells := _cells(row, columns, rows.line_num))]
    except (ValueError, csv.Error) as error:
        raise InputError(f"{what}: line {rows.line_num}: {str(error)[:200]}") from error


def _columns(head: Sequence[str], what: str) -> dict[str, int]:
    """Where those are that say something here."""
    found = {name.strip(): index for index, name in enumerate(head) if name.strip() in _COLUMNS}
    if not {"NodeType", "Partition"} & set(found) or not {"GPUHours", "AllocTRES"} & set(found):
        raise InputError(f"{what}: needs columns NodeType or Partition, and GPUHours or AllocTRES with Elapsed")
    return found


def _cells(row: Sequence[str], columns: Mapping[str, int], line: int) -> dict[str, str]:
    """Nothing for an empty line and for a step of a job."""
    if line > _MOST_ROWS:
        raise ValueError(f"the table has more than {_MOST_ROWS} lines")
    cells = {name: row[index].strip() for name, index in columns.items() if index < len(row)}
    return {} if "." in cells.get("JobID", "") else cells


def _job(cells: Mapping[str, str]) -> Job:
    share = float(cells["CommShare"]) if cells.get("CommShare") else None
    if share is not None and not 0 <= share <= 1:
        raise ValueError(f"CommShare {share} is not between 0 and 1")
    hours = float(cells["GPUHours"]) if cells.get("GPUHours") else _gpus(cells) * _seconds(cells) / 3600
    if not 0 <= hours < 1e12:
        raise ValueError(f"{hours} GPU-hours")
    node_type = cells.get("NodeType") or cells.get("Partition") or "unknown"
    return Job(clean(node_type)[:60], hours, share, _time(cells.get("Start", "")), _time(cells.get("End", "")))


def _gpus(cells: Mapping[str, str]) -> int:
    """The largest count told: "gres/gpu=4,gres/gpu:h100=4" tells the same GPUs twice."""
    return max((int(count) for count in _GPUS.findall(cells.get("AllocTRES", ""))), default=0)


def _seconds(cells: Mapping[str, str]) -> float:
    if raw := cells.get("ElapsedRaw"):
        if not raw.isdecimal():
            raise ValueError(f"ElapsedRaw {raw[:40]!r} is no number of seconds")
        return float(raw)
    found = _ELAPSED.fullmatch(cells.get("Elapsed", ""))
    if not found:
        raise ValueError("needs ElapsedRaw or Elapsed as D-HH:MM:SS")
    days, hours, minutes, seconds = (int(part or 0) for part in found.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds


def _time(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None  # "Unknown", "None": the job has not started or ended


def gains_of(words: Sequence[str]) -> dict[str, float]:
    """ "a100=1.2" -> {"a100": 1.2}. Raises InputError."""
    found = {}
    for word in words:
        name, _, text = word.rpartition("=")
        try:
            found[name] = float(text)
        except ValueError:
            found[name] = 0.0
        if not name or not 1 <= found[name] <= 1000:
            raise InputError(f"--gain {word!r}: write TYPE=FACTOR with a factor from 1")
    return found


def savings(jobs: Sequence[Job], gains: Mapping[str, float], share: float, gain: float) -> list[Saving]:
    """By node type. `gains`: measured speed of communication over the default; `gain` for types without one.

    Saved of a job: hours * share of communication * (1 - 1 / gain).
    """
    period = seconds_of(jobs)
    found = []
    for node_type in sorted({job.node_type for job in jobs}):
        mine = [job for job in jobs if job.node_type == node_type]
        factor = gains.get(node_type, gain)
        hours = sum(job.gpu_hours for job in mine)
        told = sum(job.gpu_hours * (share if job.share is None else job.share) for job in mine)
        saved = told * (1 - 1 / factor)
        found.append(Saving(node_type, hours, factor, saved, saved * _YEAR / period if period else 0.0))
    return found


def seconds_of(jobs: Sequence[Job]) -> float:
    """From the first start to the last end; 0 when the table does not tell."""
    starts = [job.start for job in jobs if job.start]
    ends = [job.end for job in jobs if job.end]
    try:
        return max(0.0, (max(ends) - min(starts)).total_seconds()) if starts and ends else 0.0
    except TypeError:  # some with a time zone, some without
        return 0.0
