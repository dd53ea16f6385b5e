"""The job and rank of this process, as the table of launchers in the core tells them (docs/launchers.md)."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from waywiser import _core

_MOST_HERE = 4096


@dataclass(frozen=True)
class Job:
    """The place of this process in a job; `name` is the same at all ranks and safe as a file name. `claim` says which
    variable makes others expected."""

    rank: int
    size: int
    name: str
    claim: str = ""


def started(environment: Mapping[str, str] = os.environ) -> _core.Started:
    """Who started this process. With another environment only the variables count. Raises InputError if they
    contradict each other."""
    from waywiser import _core

    return _core.who_started(None if environment is os.environ else dict(environment))


def job(environment: Mapping[str, str] = os.environ) -> Job | None:
    """The job that this process belongs to; None outside one. Raises InputError as started()."""
    told = started(environment)
    if told.launcher == "none":
        return None
    name = re.sub(r"[^A-Za-z0-9_.-]", "-", told.job)[:80]
    return Job(told.rank, told.size, name or "job", told.claim)


def nodes(environment: Mapping[str, str] = os.environ) -> int:
    """A lower bound for the number of nodes of the job; 1 outside a job. Raises InputError as started()."""
    return started(environment).machines


def local_rank(environment: Mapping[str, str] = os.environ) -> tuple[int, int]:
    """Rank on this node and number of ranks of this node; (0, 1) outside a job. Raises InputError as started()."""
    told = started(environment)
    return told.local_rank, min(max(told.local_size, told.local_rank + 1), _MOST_HERE)
