"""A profile as tables for the terminal, and as comma-separated values."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence

from rich.console import RenderableType

from waywiser.profile import NO_PAIRS, PairClass, Point, Profile, Series
from waywiser.report import definitions
from waywiser.terminal import add, console, group_name, operation_name, spaced, table
from waywiser.units import format_bytes, format_percent, format_rate, format_seconds

CSV_COLUMNS = (
    "source",
    "destination",
    "processes",
    "operation",
    "path",
    "bytes",
    "seconds",
    "low",
    "high",
    "p50",
    "p99",
    "samples",
    "cpu_seconds",
    "verified",
    "bytes_per_second",
    "pairs_at_once",
)


def profile_table(profile: Profile) -> RenderableType:
    """The fastest path for each measured class, operation and size."""
    cpu = [">CPU/GB"] if has_room() else []
    made = table("pairs", "!operation", ">size", "fastest", ">time", ">bandwidth", ">limit", *cpu, ">paths")
    last = ("", "")
    for group in profile.classes:
        for operation in definitions.OPERATIONS:
            series = profile.series_of(profile.measured_pair(group), group.processes, operation)
            for size in sorted({point.bytes for one in series for point in one.points}):
                found = [(point, one) for one in series for point in one.points if point.bytes == size]
                best, of = min(found, key=lambda pair: pair[0].seconds)
                name = (group_name(group), operation_name(profile, group, operation))
                add(
                    made,
                    name[0] if name[0] != last[0] else "",
                    name[1] if name != last else "",
                    format_bytes(size),
                    spaced(of.path.label),
                    format_seconds(best.seconds),
                    format_rate(best.rate),
                    format_percent(best.rate / of.limit) if of.limit else "-",
                    *([cpu_per_gb(profile, best)] if cpu else []),
                    str(len(found)),
                )
                last = name
    return made


def has_room() -> bool:
    """Whether a table may have one more column without folding the names of paths into pieces."""
    return console().width >= 100


def cpu_per_gb(profile: Profile, point: Point) -> str:
    """CPU time of all processes for 10^9 bytes, waiting included; the simulator has no model of it."""
    return "-" if profile.simulated else format_seconds(point.cpu_seconds / point.bytes * 1e9)


def best_paths(profile: Profile) -> RenderableType:
    """The fastest paths without a plan: small transfers and the best bandwidth of each class, by one pair alone where
    that was measured."""
    cpu = [">CPU/GB"] if has_room() else []
    made = table("pairs", "small transfers", ">time", "large transfers", ">bandwidth", ">limit", *cpu, ">paths")
    for group in profile.classes:
        for name, found in _measured(profile, group):
            least = min(p.bytes for p, _ in found)
            quick, by = min(((p, one) for p, one in found if p.bytes == least), key=lambda pair: pair[0].seconds)
            wide, through = max(found, key=lambda pair: (pair[0].bytes, pair[0].rate))
            add(
                made,
                name,
                by.path.mechanism,
                format_seconds(quick.seconds),
                through.path.mechanism,
                format_rate(wide.rate),
                format_percent(wide.rate / through.limit) if through.limit else "-",
                *([cpu_per_gb(profile, wide)] if cpu else []),
                str(len({one.path for _, one in found})),
            )
    return made


def _measured(profile: Profile, group: PairClass) -> Iterator[tuple[str, list[tuple[Point, Series]]]]:
    """The name and the points of a class: of one pair alone, else of each operation that was measured."""
    pair = profile.measured_pair(group)
    points = {
        operation: [(p, one) for one in profile.series_of(pair, group.processes, operation) for p in one.points]
        for operation in definitions.OPERATIONS
    }
    if alone := points["latency"] + points["streaming"]:
        yield group_name(group), alone
        return
    for operation, found in points.items():
        if found:
            yield f"{group_name(group)}, {operation_name(profile, group, operation)}", found


def nothing_of(profile: Profile, operations: Sequence[str]) -> list[str]:
    """A line for each of the operations that was measured for no pair, with the reason where it is known."""
    there = {one.operation for one in profile.series if one.points}
    lines = []
    for operation in [one for one in operations if one not in there]:
        alone = all(len(group.members) < 2 for group in profile.classes)
        lines.append(NO_PAIRS if operation == "loaded" and alone else f"{operation}: nothing was measured")
    return lines


def profile_csv(profile: Profile) -> str:
    """CSV with a line for each point and the columns CSV_COLUMNS; times in seconds."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(CSV_COLUMNS)
    for one in profile.series:
        path = one.path
        for p in one.points:
            row = (
                path.source,
                path.destination,
                path.processes,
                one.operation,
                _harmless(path.label),
                p.bytes,
                p.seconds,
                p.low,
                p.high,
            )
            writer.writerow(
                (*row, p.p50, p.p99, p.samples, p.cpu_seconds, str(p.verified).lower(), p.rate, one.pairs or "")
            )
    return text.getvalue()


def _harmless(text: str) -> str:
    """A cell that spreadsheets do not evaluate as a formula."""
    return f"'{text}" if text[:1] in "=+-@" else text
