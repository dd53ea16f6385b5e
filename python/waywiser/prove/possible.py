"""Tables of jobs that no machine can have run: refused, since what is worth something would be multiplied."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

MOST_AT_ONCE = 1_000_000  # GPUs; the largest machines have some 200,000
_MOST_OF_A_NODE = 1024  # GPUs or parts of them: 16 GPUs in 7 parts each, or shared
_YEAR = 365.25 * 24 * 3600
_LONGEST = 10 * _YEAR  # of a job
_CLOCK = 3600.0 + 60.0  # seconds by which a clock may be put forward or back, as in spring and autumn


def check_job(
    hours: float, gpus: int | None, seconds: float | None, nodes: int, span: float | None, told: Mapping[str, str]
) -> None:
    """Raises ValueError for a job that cannot be. None: the table does not say; `span`: seconds from start to end."""
    if span is not None and span < -_CLOCK:
        raise ValueError(f"it ends ({told['End']}) before it starts ({told['Start']})")
    if seconds is not None and seconds > _LONGEST:
        raise ValueError(f"it has run for {seconds / 86400 / 365.25:,.0f} years")
    if seconds is not None and span is not None and seconds > span + _CLOCK:
        raise ValueError(f"it has run for {seconds:,.0f} s, from start to end are {max(span, 0):,.0f} s")
    if gpus is not None and nodes and gpus > _MOST_OF_A_NODE * nodes:
        raise ValueError(f"{gpus} GPUs on {nodes} node{'s' if nodes > 1 else ''}")
    most = _MOST_OF_A_NODE * nodes if gpus is None else gpus
    if seconds is not None:
        time, inexact = seconds, 0.01 * seconds + 60
    else:
        time, inexact = (_LONGEST, 0.0) if span is None else (max(span, 0), _CLOCK)
    if hours * 3600 > most * (time + inexact) > 0:
        gpus_text = f"{most} GPUs" if gpus else f"at most {most} GPUs of {nodes} node{'s' if nodes > 1 else ''}"
        raise ValueError(f"{hours:,.0f} GPU-hours, but {gpus_text} for {time:,.0f} s are {most * time / 3600:,.0f}")
    if hours * 3600 > MOST_AT_ONCE * (_YEAR if span is None else max(span, 0) + _CLOCK):
        when = "in one job" if span is None else f"between {told['Start']} and {told['End']}"
        raise ValueError(f"{hours:,.0f} GPU-hours {when}: no machine has so many GPUs")


def span_of(start: datetime | None, end: datetime | None) -> float | None:
    """Seconds from start to end; None if one is not known, or only one has a time zone."""
    try:
        return (end - start).total_seconds() if start and end else None
    except TypeError:
        return None


def check_sum(hours: float, seconds: float) -> None:
    """Raises ValueError if the jobs of so many seconds have used more GPUs than a machine has."""
    if seconds and hours * 3600 / seconds > MOST_AT_ONCE:
        days = f"{seconds / 86400:,.1f} days"
        raise ValueError(
            f"{hours:,.0f} GPU-hours in {days} are {hours * 3600 / seconds:,.0f} GPUs in use all the time: "
            "no machine has so many"
        )
