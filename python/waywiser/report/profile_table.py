"""A profile as tables for the terminal, and as comma-separated values."""

from __future__ import annotations

import csv
import io

from rich.console import RenderableType

from waywiser.profile import Profile
from waywiser.report import definitions
from waywiser.terminal import add, group_name, operation_name, spaced, table
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
    made = table("pairs", "!operation", ">size", "fastest", ">time", ">bandwidth", ">limit", ">paths")
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
                    str(len(found)),
                )
                last = name
    return made


def roads(profile: Profile) -> RenderableType:
    """The fastest paths without a plan: small transfers and the best bandwidth of each class."""
    made = table("pairs", "small transfers", ">time", "large transfers", ">bandwidth", ">limit", ">paths")
    for group in profile.classes:
        pair = profile.measured_pair(group)
        points = [
            (p, one)
            for kind in ("latency", "streaming")
            for one in profile.series_of(pair, group.processes, kind)
            for p in one.points
        ]
        if not points:
            continue
        least = min(p.bytes for p, _ in points)
        quick, by = min(((p, one) for p, one in points if p.bytes == least), key=lambda found: found[0].seconds)
        wide, through = max(points, key=lambda found: (found[0].bytes, found[0].rate))
        limit = format_percent(wide.rate / through.limit) if through.limit else "-"
        count = len({one.path for _, one in points})
        add(
            made,
            group_name(group),
            by.path.mechanism,
            format_seconds(quick.seconds),
            through.path.mechanism,
            format_rate(wide.rate),
            limit,
            str(count),
        )
    return made


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
