"""Finds the differences between two profiles of a machine."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from waywiser.json_fields import clean
from waywiser.plan import Plan
from waywiser.profile import Path, Point, Profile, pair_text


@dataclass(frozen=True)
class Change:
    """A range of sizes over which one path's intervals no longer overlap; `ratio` is new time / old time."""

    pair: str
    operation: str
    path: str
    from_bytes: int
    to_bytes: int
    ratio: float
    old_seconds: float
    new_seconds: float

    @property
    def word(self) -> str:
        """ "faster" or "slower"."""
        return "slower" if self.ratio > 1 else "faster"


@dataclass(frozen=True)
class Switched:
    """A range of sizes for which another path is chosen now."""

    pair: str
    operation: str
    from_bytes: int
    to_bytes: int
    old: str
    new: str


@dataclass(frozen=True)
class Comparison:
    """All differences; `state` has (what, old, new)."""

    changes: tuple[Change, ...]
    appeared: tuple[str, ...]
    vanished: tuple[str, ...]
    switched: tuple[Switched, ...]
    state: tuple[tuple[str, str, str], ...]

    @property
    def other_machine(self) -> bool:
        """Whether the two profiles are of machines with different fingerprints."""
        return any(what == "fingerprint" for what, _, _ in self.state)

    def as_json(self) -> dict[str, Any]:
        """The object that `waywiser compare --json` prints."""
        return {
            "changes": [{**asdict(one), "what": one.word} for one in self.changes],
            "appeared": list(self.appeared),
            "vanished": list(self.vanished),
            "choices": [asdict(one) for one in self.switched],
            "state": [{"what": what, "old": old, "new": new} for what, old, new in self.state],
        }


def _apart(old: Point, new: Point) -> int:
    """1: slower beyond the intervals, -1: faster, 0: they overlap."""
    if new.low > old.high:
        return 1
    return -1 if new.high < old.low else 0


def _runs(old: tuple[Point, ...], new: tuple[Point, ...]) -> list[list[tuple[Point, Point]]]:
    """Runs of neighbouring common sizes that changed in the same direction."""
    now = {point.bytes: point for point in new}
    runs: list[list[tuple[Point, Point]]] = []
    last = 0
    for point in old:
        if point.bytes not in now:
            continue
        pair = (point, now[point.bytes])
        direction = _apart(*pair)
        if direction and direction == last:
            runs[-1].append(pair)
        elif direction:
            runs.append([pair])
        last = direction
    return runs


def _changes(old: Profile, new: Profile) -> list[Change]:
    before = {(one.path, one.operation): one.points for one in old.series}
    found = []
    for one in new.series:
        for run in _runs(before.get((one.path, one.operation), ()), one.points):
            was, now = max(run, key=lambda pair: abs(pair[1].seconds / pair[0].seconds - 1))
            found.append(
                Change(
                    one.path.pair_text,
                    one.operation,
                    one.path.label,
                    run[0][0].bytes,
                    run[-1][0].bytes,
                    now.seconds / was.seconds,
                    was.seconds,
                    now.seconds,
                )
            )
    return sorted(found, key=lambda change: -max(change.ratio, 1 / change.ratio))


def _names(paths: set[Path]) -> tuple[str, ...]:
    return tuple(sorted(f"{path.pair_text} {path.label}" for path in paths))


def _switched(old: Plan, new: Plan) -> list[Switched]:
    found = []
    for row in new.messages():
        for was in old.rows_of(row.pairs[0], row.processes, row.operation, row.rail) if not row.encrypted else ():
            first, last = max(row.from_bytes, was.from_bytes), min(row.to_bytes, was.to_bytes)
            if first <= last and was.path.label != row.path.label:
                pair = pair_text(row.pairs[0], row.processes)
                found.append(Switched(pair, row.operation, first, last, was.path.label, row.path.label))
    return found


def _flat(value: Any, name: str = "", depth: int = 0) -> dict[str, str]:
    if isinstance(value, dict) and depth < 6:
        found: dict[str, str] = {}
        for key, one in value.items():
            found.update(_flat(one, f"{name}.{clean(str(key))}" if name else clean(str(key)), depth + 1))
        return found
    return {name: clean(str(value))[:120]}


def _state(old: Profile, new: Profile) -> list[tuple[str, str, str]]:
    pairs = []
    for profile in (old, new):
        plain = {"machine": profile.machine, "fingerprint": profile.fingerprint, "backend": profile.backend}
        pairs.append({**plain, "simulated": str(profile.simulated), **_flat(profile.state)})
    before, now = pairs
    names = list(dict.fromkeys([*before, *now]))
    return [(name, before.get(name, "-"), now.get(name, "-")) for name in names if before.get(name) != now.get(name)]


def compare_profiles(
    old: Profile, new: Profile, old_plan: Plan | None = None, new_plan: Plan | None = None
) -> Comparison:
    """Differences beyond the confidence intervals; also of the choices if both plans are given."""
    switched = _switched(old_plan, new_plan) if old_plan and new_plan else []
    return Comparison(
        tuple(_changes(old, new)),
        _names(new.paths() - old.paths()),
        _names(old.paths() - new.paths()),
        tuple(switched),
        tuple(_state(old, new)),
    )
