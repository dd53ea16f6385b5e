"""Reads a profile into Python values. The core writes the file and checks it in full."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from waywiser.checked import Node
from waywiser.other_nodes import names_of, with_names
from waywiser.profile import OPERATIONS, FirstUse, Pair, PairClass, Path, Point, Profile, Rejected, Series, Unavailable

_PLACE = re.compile(r"([A-Za-z0-9._-]{1,64}:)?(host|gpu)\d{1,4}")


def read_place(node: Node, key: str) -> str:
    """A place, "host0" or "gpu3", under `key`."""
    place = node.text(key)
    if not _PLACE.fullmatch(place):
        raise node.child(key).refuse("must be a place: host0 or gpu0")
    return place


def read_pair(node: Node) -> Pair:
    """A list of two places."""
    places = [element.value for element in node.elements()]
    if len(places) != 2 or not all(isinstance(place, str) and _PLACE.fullmatch(place) for place in places):
        raise node.refuse('must be two places: ["host0", "gpu0"]')
    return places[0], places[1]


def read_path(node: Node) -> Path:
    """A path object."""
    parameters = node.value.get("parameters", {}) if isinstance(node.value, dict) else {}
    if not isinstance(parameters, dict) or len(parameters) > 32:
        raise node.refuse("parameters must be an object of at most 32 entries")
    return Path(
        node.text("mechanism"),
        read_place(node, "source"),
        read_place(node, "destination"),
        node.integer("processes", 1, 1, 2),
        tuple(sorted((name, Node(parameters, node.where).text(name)) for name in parameters)),
    )


def _read_point(node: Node) -> Point:
    seconds = node.number("seconds", above_zero=True)
    return Point(
        node.integer("bytes", least=1, most=1 << 60),
        seconds,
        node.number("low", seconds, above_zero=True),
        node.number("high", seconds, above_zero=True),
        node.number("p50", seconds, above_zero=True),
        node.number("p99", seconds, above_zero=True),
        node.integer("samples", 0),
        node.number("cpu_seconds", 0.0),
        node.flag("verified"),
    )


def _read_series(node: Node, with_limit: bool) -> Series:
    points = tuple(_read_point(point) for point in node.items("points"))
    if any(a.bytes >= b.bytes for a, b in pairwise(points)):
        raise node.refuse("sizes must ascend")
    operation = node.word("operation", OPERATIONS)
    limit, source = node.number("limit", 0.0), node.text("limit_source", "")
    if not with_limit:
        limit, source = 0.0, ""
    pairs = node.integer("pairs", 0, 0, 1 << 20)
    return Series(read_path(node.child("path")), operation, points, limit, source, pairs)


def _read_class(node: Node) -> PairClass:
    members = tuple(read_pair(pair) for pair in node.items("members"))
    if not members:
        raise node.refuse("members must not be empty")
    return PairClass(node.text("name"), members, node.integer("processes", 1, 1, 2))


def _read_unavailable(node: Node) -> Unavailable:
    places = read_place(node, "source"), read_place(node, "destination")
    return Unavailable(node.text("mechanism"), *places, node.integer("processes", 1, 1, 2), node.text("reason"))


def _read_rejected(node: Node) -> Rejected:
    path = read_path(node.child("path"))
    return Rejected(path, node.word("operation", OPERATIONS), node.integer("bytes", 0), node.text("reason"))


def _missing_classes(classes: tuple[PairClass, ...], series: tuple[Series, ...]) -> Iterator[PairClass]:
    """Adds a class for each measured pair that is in no class."""
    known = {(pair, group.processes) for group in classes for pair in group.members}
    for one in series:
        key = (one.path.pair, one.path.processes)
        if key not in known:
            known.add(key)
            yield PairClass(one.path.pair_text, (one.path.pair,), one.path.processes)


def _refuse_double(series: tuple[Series, ...], node: Node) -> None:
    known: set[tuple[Path, str]] = set()
    for one in series:
        if (one.path, one.operation) in known:
            raise node.refuse(f"{one.path.pair_text} {one.path.label} is there twice for {one.operation}")
        known.add((one.path, one.operation))


def read_profile(value: Any, what: str) -> Profile:
    """A profile from its JSON; InputError names the first wrong field, with `what` (a file name) before it."""
    names = names_of(value)
    node = Node(with_names(value, names) if names else value, what)
    state = value.get("state", {}) if isinstance(value, dict) else {}
    classes = tuple(_read_class(one) for one in node.items("classes"))
    real = node.text("backend") != "virtual_gpu"  # limits of wires do not apply to virtual GPUs
    series = tuple(_read_series(one, real) for one in node.items("series"))
    _refuse_double(series, node)
    return Profile(
        node.text("fingerprint"),
        node.text("machine"),
        node.text("backend"),
        node.flag("simulated"),
        node.text("created", ""),
        state if isinstance(state, dict) else {},
        (*classes, *_missing_classes(classes, series)),
        series,
        tuple(FirstUse(read_path(one.child("path")), one.number("seconds")) for one in node.items("first_use")),
        tuple(_read_unavailable(one) for one in node.items("unavailable")),
        tuple(_read_rejected(one) for one in node.items("rejected")),
        tuple(_read_series(one, real) for one in node.items("survey")),
        names,
    )
