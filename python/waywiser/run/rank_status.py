"""Asks the ranks on this machine for their status."""

from __future__ import annotations

import json
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_PATIENCE = 2.0  # seconds
_LONGEST_ANSWER = 65536


@dataclass(frozen=True)
class RankStatus:
    """The status that a rank reports. `call`: None outside the group's calls; `waited`: seconds, 0 for a short wait.

    `progress_thread`: the core of that thread ("not bound to a core"); None if there is no such thread. `sent`: bytes
    from host memory since the join, by mechanism.
    """

    job: str
    rank: int
    size: int
    host: str
    process: int
    parent: int
    call: str | None
    waited: float
    progress_thread: str | None = None
    sent: Mapping[str, int] = field(default_factory=dict)


def ask(path: Path) -> RankStatus | None:
    """The answer at one socket; None if there is no answer, or an unknown one."""
    try:
        with socket.socket(socket.AF_UNIX) as line:
            line.settimeout(_PATIENCE)
            line.connect(str(path))
            answer = b""
            while part := line.recv(4096):
                answer += part
                if len(answer) > _LONGEST_ANSWER:
                    return None
        return _read(json.loads(answer))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _read(value: Any) -> RankStatus:
    call, thread = value["call"], value["progress_thread"]
    return RankStatus(
        str(value["job"]),
        int(value["rank"]),
        int(value["size"]),
        str(value["host"]),
        int(value["process"]),
        int(value["parent"]),
        None if call is None else str(call),
        float(value["waited"]),
        None if thread is None else str(thread),
        {str(name): int(count) for name, count in value.get("sent", {}).items()},
    )


def job_of(process: int, folder: Path) -> list[RankStatus]:
    """The ranks, in order, of the job that `process` belongs to or has started."""
    asked = (ask(path) for path in sorted(folder.glob("rank-*.sock")))
    answers = [answer for answer in asked if answer is not None]
    jobs = {answer.job for answer in answers if process in (answer.process, answer.parent)}
    return sorted((answer for answer in answers if answer.job in jobs), key=lambda answer: answer.rank)
