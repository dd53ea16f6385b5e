"""Profiles as Python values. The core has checked them: it refuses what is missing, of another type or out of range."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import waywiser._core as _core
from waywiser.errors import InputError
from waywiser.files import parse_json
from waywiser.json_fields import check_by_core
from waywiser.other_nodes import for_people, names_of
from waywiser.profile import (
    OLDEST,
    SCHEMA,
    VERSION,
    FirstUse,
    PairClass,
    Path,
    Point,
    Profile,
    Rejected,
    Series,
    Unavailable,
)

Json = dict[str, Any]


def _path(value: Json) -> Path:
    parameters = tuple(sorted(value["parameters"].items()))
    return Path(value["mechanism"], value["source"], value["destination"], value["processes"], parameters)


def _point(value: Json) -> Point:
    seconds, low, high, p50, p99 = (float(value[key]) for key in ("seconds", "low", "high", "p50", "p99"))
    cpu_seconds = float(value["cpu_seconds"])
    return Point(value["bytes"], seconds, low, high, p50, p99, value["samples"], cpu_seconds, value["verified"])


def _series(value: Json, with_limit: bool) -> Series:
    limit, source = (float(value["limit"]), value["limit_source"]) if with_limit else (0.0, "")
    points = tuple(_point(one) for one in value["points"])
    return Series(_path(value["path"]), value["operation"], points, limit, source, value.get("pairs", 0))


def _class(value: Json) -> PairClass:
    members = tuple((source, destination) for source, destination in value["members"])
    return PairClass(value["name"], members, value["processes"])


def _unavailable(value: Json) -> Unavailable:
    path = _path(value)
    return Unavailable(path.mechanism, path.source, path.destination, path.processes, value["reason"])


def _rejected(value: Json) -> Rejected:
    return Rejected(_path(value["path"]), value["operation"], value["bytes"], value["reason"])


def _missing_classes(classes: tuple[PairClass, ...], series: tuple[Series, ...]) -> Iterator[PairClass]:
    """Adds a class for each measured pair that is in no class."""
    known = {(pair, group.processes) for group in classes for pair in group.members}
    for one in series:
        key = (one.path.pair, one.path.processes)
        if key not in known:
            known.add(key)
            yield PairClass(one.path.pair_text, (one.path.pair,), one.path.processes)


def _refuse_double(series: tuple[Series, ...], what: str) -> None:
    known: set[tuple[Path, str]] = set()
    for one in series:
        if (one.path, one.operation) in known:
            raise InputError(f"{what}: {one.path.pair_text} {one.path.label} is there twice for {one.operation}")
        known.add((one.path, one.operation))


def read_profile(data: bytes, what: str) -> Profile:
    """A profile from its JSON; InputError names the first wrong field, with `what` (a file name) before it."""
    value = parse_json(data, what, SCHEMA, VERSION, OLDEST)
    check_by_core(_core.check_profile, data, what)
    names = names_of(value)
    value = for_people(value, names)
    real = value["backend"] != "virtual_gpu"  # limits of wires do not apply to virtual GPUs
    classes = tuple(_class(one) for one in value["classes"])
    series = tuple(_series(one, real) for one in value["series"])
    _refuse_double(series, what)
    return Profile(
        value["fingerprint"],
        value["machine"],
        value["backend"],
        value["simulated"],
        value["created"],
        value["state"],
        (*classes, *_missing_classes(classes, series)),
        series,
        tuple(FirstUse(_path(one["path"]), float(one["seconds"])) for one in value["first_use"]),
        tuple(_unavailable(one) for one in value["unavailable"]),
        tuple(_rejected(one) for one in value["rejected"]),
        tuple(_series(one, real) for one in value.get("survey", [])),
        names,
    )
