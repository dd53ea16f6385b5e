"""What a running job does, for the terminal and as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from waywiser.json_fields import clean
from waywiser.look import machine
from waywiser.look.finding import Status
from waywiser.running.evidence import Evidence
from waywiser.running.fallbacks import Named, worst
from waywiser.running.mechanisms import BY_MACHINE, SEEN, mechanisms
from waywiser.running.settings import deciding, said
from waywiser.running.users import NCCL, PLUG_INS, has, libraries
from waywiser.running.within import logged_ways
from waywiser.terminal import add, print_result, table
from waywiser.units import format_bytes, format_rate

SCHEMA, VERSION = "waywiser.job", 1
_STYLES = {Status.problem: "bold red", Status.warning: "yellow", Status.unknown: "magenta", Status.ok: "green"}
_MOST_ROWS = 40


def not_known(seen: Evidence, found: Sequence[Named]) -> list[str]:
    """What nobody can say of this job, and what would be needed."""
    lines = [*seen.unknown, *(one.finding.text for one in found if one.finding.status is Status.unknown)]
    if any(one.counted == SEEN and one.mechanism.startswith("shared memory") for one in mechanisms(seen)):
        lines.append("how many bytes went through shared memory and how many by CMA: the kernel counts neither")
    if has(seen, NCCL) and not logged_ways(seen):
        lines.append("which transport NCCL took: a log would say (NCCL_DEBUG=INFO, NCCL_DEBUG_FILE=/tmp/nccl.%p.log)")
    if any(one.counted == BY_MACHINE for one in mechanisms(seen)):
        lines.append("which process used RDMA, NVLink and PCIe: their counters are of the whole machine")
    lines.append("variables that the program has set itself since it started: /proc shows those of its start")
    return list(dict.fromkeys(lines))


def as_json(seen: Evidence, found: Sequence[Named]) -> str:
    """A document of schema waywiser.job."""
    job, decided = seen.job, deciding(seen)
    ranks = [
        {"rank": one.number, "process": one.process.number, "command": clean(one.process.command),
         "libraries": libraries(one.process), "plug_ins": one.process.loaded(PLUG_INS)}
        for one in job.ranks
    ]  # fmt: skip
    rows = [
        {"mechanism": one.mechanism, "between": one.between, "bytes": one.bytes, "bytes_per_second": one.rate,
         "counted_by": one.counted}
        for one in mechanisms(seen)
    ]  # fmt: skip
    fell = [
        {"id": one.id, "title": one.title, "status": one.finding.status.value, "found": one.finding.text,
         "remedy": one.remedy}
        for one in found
    ]  # fmt: skip
    settings = {name: {"value": value, "from": origin} for name, (value, origin) in sorted(decided.items())}
    head = {"schema": SCHEMA, "version": VERSION, "launcher": job.launcher, "command": job.command, "ranks": job.size}
    body: dict[str, Any] = {"seconds": seen.seconds, "here": ranks, "moved": rows, "settings": settings}
    return json.dumps({**head, **body, "fall_backs": fell, "unknown": not_known(seen, found)}, indent=1)


def print_job(seen: Evidence, found: Sequence[Named]) -> None:
    """For people: who, which way, decided by what, fall-backs, what is not known."""
    job = seen.job
    by = "" if job.launcher == "none" else f" of {job.launcher}"
    some = "" if job.size == len(job.ranks) else f" of {job.size}"
    title = f"{len(job.ranks)}{some} rank{'' if len(job.ranks) == 1 else 's'}{by} here, watched for {seen.seconds:g} s"
    parts: list[RenderableType] = [Text(title, "bold"), Text()]
    made = table(">rank", ">process", "libraries", "plug-ins")
    for rank in job.ranks[:_MOST_ROWS]:
        plug_ins = (file.rpartition("/")[2] for file in rank.process.loaded(PLUG_INS))
        named = machine.named(libraries(rank.process), 6) or "none that is known"
        add(made, str(rank.number), str(rank.process.number), named, machine.named(plug_ins, 6))
    parts += [made, Text()]
    rows = mechanisms(seen)
    if rows:
        made = table("way of the bytes", "between", ">bytes", ">now", "counted by")
        for one in rows[:_MOST_ROWS]:
            many = "not counted" if one.bytes is None else format_bytes(one.bytes)
            rate = format_rate(one.rate) if one.rate else ""
            add(made, one.mechanism, one.between, many, rate, "" if one.counted == SEEN else f"the {one.counted}")
        parts += [made, *([Text(f"and {len(rows) - _MOST_ROWS} more")] if len(rows) > _MOST_ROWS else []), Text()]
    decided = deciding(seen)
    settings = "\n".join(said(decided, name) for name in sorted(decided)) or "no variable and no file: the defaults"
    parts += [Text("settings", "bold"), _indented(settings), Text()]
    for each in found:
        status = each.finding.status
        if status is not Status.unknown:
            parts.append(Text(f"{each.id} {status.value}: {each.title}", _STYLES[status]))
            parts.append(_indented(each.finding.text))
            parts.append(_indented(f"remedy: {each.remedy}", "cyan"))
    if worst(list(found)) in (Status.ok, Status.unknown):
        parts.append(Text("no fall-back is seen", "green"))
    parts += [Text(), Text("not known", "bold"), *(_indented(line) for line in not_known(seen, found))]
    print_result(Group(*parts))


def _indented(text: str, style: str = "") -> Padding:
    return Padding(Text(text, style), (0, 0, 0, 4))
