"""The plan joined with the profile: the cost of each choice and its share of the limit."""

from __future__ import annotations

from dataclasses import dataclass

from waywiser.plan import Plan, PlanRow, RankedWay
from waywiser.profile import OPERATIONS, PairClass, Path, Profile, Series


@dataclass(frozen=True)
class Choice:
    """One range of sizes and its path; times in seconds, rates in bytes/s; 0 where unknown."""

    group: PairClass
    operation: str
    from_bytes: int
    to_bytes: int
    path: Path
    first_bytes: int
    first_seconds: float
    last_bytes: int
    last_seconds: float
    limit: float
    runner_up: RankedWay | None
    why: str
    joined: bool = False  # joins several rows of the plan that differ in parameters

    @property
    def rate(self) -> float:
        """Bytes per second at the largest measured size in the range."""
        return self.last_bytes / self.last_seconds if self.last_seconds else 0.0

    @property
    def percent(self) -> float | None:
        """`rate` divided by the limit of the slowest hop."""
        return self.rate / self.limit if self.limit and self.rate else None


def series_for(profile: Profile, row: PlanRow) -> Series | None:
    """The series of the path that a row chooses."""
    for one in profile.series_of(row.path.pair, row.processes, row.operation):
        if one.path == row.path:
            return one
    return None


def _choice(profile: Profile, group: PairClass, row: PlanRow) -> Choice:
    series = series_for(profile, row)
    points = row.expected
    if not points and series is not None:
        points = tuple((p.bytes, p.seconds) for p in series.points if row.from_bytes <= p.bytes <= row.to_bytes)
    first, last = (points[0], points[-1]) if points else ((0, 0.0), (0, 0.0))
    limit = series.limit if series else 0.0
    return Choice(
        group,
        row.operation,
        row.from_bytes,
        row.to_bytes,
        row.path,
        *first,
        *last,
        limit,
        row.runner_up,
        row.why,
    )


def choices(profile: Profile, plan: Plan) -> list[Choice]:
    """Every row of the plan, by class, operation and size."""
    found = []
    for group in profile.classes:
        pair = profile.measured_pair(group)
        for operation in OPERATIONS:
            found += [_choice(profile, group, row) for row in plan.rows_of(pair, group.processes, operation)]
    return found


def joined(rows: list[Choice]) -> list[Choice]:
    """Joins neighbours of a class and operation that differ only in parameters into a row with the last one's path."""
    found: list[Choice] = []
    for row in rows:
        last = found[-1] if found else None
        same = last and (last.group, last.operation, last.path.mechanism) == (
            row.group,
            row.operation,
            row.path.mechanism,
        )
        if last and same:
            found[-1] = Choice(
                row.group,
                row.operation,
                last.from_bytes,
                row.to_bytes,
                row.path,
                *(
                    (last.first_bytes, last.first_seconds)
                    if last.first_seconds
                    else (row.first_bytes, row.first_seconds)
                ),
                *((row.last_bytes, row.last_seconds) if row.last_seconds else (last.last_bytes, last.last_seconds)),
                row.limit,
                row.runner_up,
                row.why,
                True,
            )
        else:
            found.append(row)
    return found
