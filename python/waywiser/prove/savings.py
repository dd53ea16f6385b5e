"""The value of measured gains in GPU-hours a year, from a table of jobs. Every assumption is stated."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from waywiser.errors import InputError
from waywiser.json_fields import clean
from waywiser.prove.gains import TOLD, Gain, NodeGains, same_everywhere
from waywiser.prove.possible import check_job, check_sum, span_of

_DAY = 24 * 3600
_YEAR = 365.25 * _DAY
_MOST_ROWS = 5_000_000
_COLUMNS = {
    "JobID", "NodeType", "Partition", "GPUHours", "AllocTRES", "AllocGRES", "ElapsedRaw", "Elapsed", "CommShare",
    "Start", "End", "NNodes", "AllocNodes", "JobName",
}  # fmt: skip
_NODES = re.compile(r"(?:^|,)node=([^,]*)")
_GPUS = re.compile(r"(?:^|,)gres/gpu(:[^,=]*)?=([^,]*)")
_GRES = re.compile(r"(?:^|,)(?:gres[:/])?gpu(:[^,:(]*[^,:(0-9][^,:(]*)?:([^,:(]*)(?:\([^()]*\))?(?=,|$)")
_COUNT = re.compile(r"([0-9]{1,6})(\.[0-9]{2})?([KM]?)")
_STEPS = {"": 1, "K": 1 << 10, "M": 1 << 20}
_ELAPSED = re.compile(r"(?:(\d{1,4})-)?(\d{1,3}):(\d{2}):(\d{2})")


@dataclass(frozen=True)
class Job:
    """GPU-hours of a job on one node type, and the fraction of its time in communication (None: unknown).

    `nodes`: its number of nodes; 1 if the table does not say; `name`: empty if it does not.
    """

    node_type: str
    gpu_hours: float
    share: float | None
    start: datetime | None
    end: datetime | None
    nodes: int = 1
    name: str = ""


@dataclass(frozen=True)
class Saving:
    """GPU-hours of a node type, for jobs on one node or on several: in all, in communication, saved, and saved per year
    of such use. Without a gain nothing is saved. `program`: jobs of this program, whose whole runs were compared:
    all of their time counts, not only communication."""

    node_type: str
    several: bool
    jobs: int
    gpu_hours: float
    communication: float
    gain: Gain | None
    saved: float
    saved_a_year: float
    program: str = ""


def read_jobs(text: str, what: str) -> list[Job]:
    """A table with a head line, separated by "|" (sacct --parsable2) or commas. Raises InputError with the line.

    Columns: NodeType or Partition; GPUHours, or AllocTRES with ElapsedRaw or Elapsed; CommShare (0 to 1), Start,
    End and JobName are optional. Steps of a job ("123.0", "123.batch") are skipped: the job's line includes them. Jobs
    that no machine can have run are refused.
    """
    first = text.partition("\n")[0]
    rows = csv.reader(io.StringIO(text), delimiter="|" if "|" in first else ",")
    try:
        columns = _columns(next(rows, []), what)
        jobs, seen = [], set()
        for row in rows:
            if cells := _cells(row, columns, rows.line_num):
                jobs.append(_job(cells))
                name = cells.get("JobID"), cells.get("Start")  # one that is queued again keeps its number
                if cells.get("JobID") and name in seen:
                    raise ValueError(f"job {clean(cells['JobID'])[:40]} is there twice")
                seen.add(name)
        check_sum(sum(job.gpu_hours for job in jobs), covered(jobs))
        return jobs
    except InputError:
        raise
    except (ValueError, csv.Error) as error:
        raise InputError(f"{what}: line {rows.line_num}: {str(error)[:200]}") from error


def _columns(head: Sequence[str], what: str) -> dict[str, int]:
    """The positions of the columns that are used here."""
    found = {name.strip(): index for index, name in enumerate(head) if name.strip() in _COLUMNS}
    if not {"NodeType", "Partition"} & set(found) or not {"GPUHours", "AllocTRES", "AllocGRES"} & set(found):
        raise InputError(f"{what}: needs columns NodeType or Partition, and GPUHours or AllocTRES with Elapsed")
    return found


def _cells(row: Sequence[str], columns: Mapping[str, int], line: int) -> dict[str, str]:
    """The job of a line; None for an empty line or a step of a job."""
    if line > _MOST_ROWS:
        raise ValueError(f"the table has more than {_MOST_ROWS} lines")
    cells = {name: row[index].strip() for name, index in columns.items() if index < len(row)}
    return {} if "." in cells.get("JobID", "") else cells


def _job(cells: Mapping[str, str]) -> Job:
    share = float(cells["CommShare"]) if cells.get("CommShare") else None
    if share is not None and not 0 <= share <= 1:
        raise ValueError(f"CommShare {share} is not between 0 and 1")
    is_told = bool(cells.get("GPUHours"))
    gpus = _gpus(cells) if cells.get("AllocTRES") or cells.get("AllocGRES") else None
    seconds = _seconds(cells) if not is_told or cells.get("ElapsedRaw") or cells.get("Elapsed") else None
    hours = float(cells["GPUHours"]) if is_told else (gpus or 0) * (seconds or 0) / 3600
    if not 0 <= hours < 1e12:
        raise ValueError(f"{hours} GPU-hours")
    node_type = cells.get("NodeType") or cells.get("Partition") or "unknown"
    start, end = (_time(cells.get(name, "")) for name in ("Start", "End"))
    nodes = _nodes(cells)
    check_job(hours, gpus, seconds, nodes, span_of(start, end), cells)
    return Job(clean(node_type)[:60], hours, share, start, end, nodes or 1, cells.get("JobName", ""))


def _nodes(cells: Mapping[str, str]) -> int:
    """0 if the table does not say."""
    found = _NODES.search(cells.get("AllocTRES", ""))
    told = cells.get("NNodes") or cells.get("AllocNodes") or (found[1] if found else "")
    return _count(told, "nodes") if told else 0


def _gpus(cells: Mapping[str, str]) -> int:
    """The count of all types where it is given, else the sum over the types: "gres/gpu=6,gres/gpu:a100=4,
    gres/gpu:v100=2" counts the same GPUs twice. Older versions: "gpu:a100:4,gpu:v100:2" in AllocGRES."""
    told = _GPUS.findall(cells.get("AllocTRES", "")) or _GRES.findall(cells.get("AllocGRES", ""))
    counts = [(kind, _count(text, "GPUs")) for kind, text in told]
    whole = [count for kind, count in counts if not kind]
    return whole[0] if whole else sum(count for _, count in counts)


def _count(text: str, of: str) -> int:
    """As Slurm writes it: "1536", or "1.34K" in steps of 1024, rounded to two places."""
    found = _COUNT.fullmatch(text)
    if not found or (found[2] and not found[3]):
        raise ValueError(f"{text[:40]!r} is not a number of {of}")
    return round(float(found[1] + (found[2] or "")) * _STEPS[found[3]])


def _seconds(cells: Mapping[str, str]) -> float:
    if raw := cells.get("ElapsedRaw"):
        if not raw.isdecimal():
            raise ValueError(f"ElapsedRaw {raw[:40]!r} is not a number of seconds")
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


def gains_told(words: Sequence[str]) -> dict[str, NodeGains]:
    """ "a100=1.2" -> a gain of 1.2 for all jobs on a100. Raises InputError."""
    found = {}
    for word in words:
        name, _, text = word.rpartition("=")
        try:
            factor = float(text)
        except ValueError:
            factor = 0.0
        if not name or not 1 <= factor <= 1000:
            raise InputError(f"--gain {word!r}: write TYPE=FACTOR with a factor from 1")
        found[name] = same_everywhere(factor, TOLD)
    return found


def savings(
    jobs: Sequence[Job], gains: Mapping[str, NodeGains], share: float, default: NodeGains | None = None
) -> list[Saving]:
    """The savings by node type, separately for jobs on one node and on several, and for each program that was proved.
    `default`: gain of all other types.

    Saved by a job: hours * share of communication * (1 - 1 / gain); of a proved program hours * (1 - 1 / gain).
    """
    period = seconds_of(jobs)
    groups: dict[tuple[str, bool, str], list[Job]] = {}
    for job in jobs:
        program = job.name if job.name in gains.get(job.node_type, NodeGains()).programs else ""
        groups.setdefault((job.node_type, job.nodes > 1, program), []).append(job)
    found = []
    for (node_type, several, program), mine in sorted(groups.items()):
        known = gains.get(node_type, default or NodeGains())
        gain = known.programs[program] if program else known.of(2 if several else 1)
        hours = sum(job.gpu_hours for job in mine)
        told = sum(job.gpu_hours * (share if job.share is None else job.share) for job in mine)
        told = hours if program else told
        saved = told * gain.saved if gain else 0.0
        a_year = saved * _YEAR / period if period else 0.0
        found.append(Saving(node_type, several, len(mine), hours, told, gain, saved, a_year, program))
    return found


def seconds_of(jobs: Sequence[Job]) -> float:
    """What the jobs cover, if that tells something of a year: from a day on; else 0."""
    return found if (found := covered(jobs)) >= _DAY else 0.0


def covered(jobs: Sequence[Job]) -> float:
    """From the first start to the last end; 0 if the table does not say."""
    starts = [job.start for job in jobs if job.start]
    ends = [job.end for job in jobs if job.end]
    try:
        return max(0.0, (max(ends) - min(starts)).total_seconds()) if starts and ends else 0.0
    except TypeError:  # some with a time zone, some without
        return 0.0
