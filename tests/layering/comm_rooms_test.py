"""The rooms of src/waywiser/comm have an order too, so that there is one way to read them: from the ground up."""

from __future__ import annotations

import re

from layering_test import SOURCES, cpp_files, includes, without_comments

COMM = SOURCES / "comm"
GROUND = {"", "message"}  # "": the files of comm itself
# Room -> the rooms that it may include, besides itself: none that comes later in this table.
MAY_INCLUDE = {
    "": set(),
    "message": {""},
    "bootstrap": GROUND,
    "shared_memory": GROUND | {"bootstrap"},
    "network": GROUND | {"bootstrap", "shared_memory"},
    "peer_memory": GROUND,
    "session": GROUND | {"bootstrap", "shared_memory", "network", "peer_memory"},
    "windows": GROUND | {"peer_memory", "session"},
    "rendezvous": GROUND | {"peer_memory", "session"},
}

# Outside of transport/ucx.
SPEAK_UCX = {"comm/network/ucx_messages"}


def room_of(path: str) -> str:
    """Of a path below comm."""
    return path.split("/")[0] if "/" in path else ""


def wrong_includes(room: str, included: list[str]) -> list[str]:
    """Those of `included` that a file of `room` must not include."""
    ours = [header.removeprefix("waywiser/comm/") for header in included if header.startswith("waywiser/comm/")]
    return [header for header in ours if room_of(header) != room and room_of(header) not in MAY_INCLUDE[room]]


def test_the_rule_refuses_a_room_above() -> None:
    upward = ["waywiser/comm/session/session.hpp"]
    assert wrong_includes("bootstrap", upward) == ["session/session.hpp"]
    assert wrong_includes("", ["waywiser/comm/message/tag.hpp"]) == ["message/tag.hpp"]
    assert wrong_includes("windows", [*upward, "waywiser/comm/schedule.hpp", "waywiser/base/error.hpp"]) == []


def test_every_room_has_a_place_in_the_order() -> None:
    assert {path.name for path in COMM.iterdir() if path.is_dir()} == MAY_INCLUDE.keys() - {""}
    rooms = list(MAY_INCLUDE)
    assert [room for room in rooms if not MAY_INCLUDE[room] <= set(rooms[: rooms.index(room)])] == []


def test_rooms_include_what_is_below_them() -> None:
    wrong = []
    for path in cpp_files():
        if COMM not in path.parents:
            continue
        name = str(path.relative_to(COMM))
        wrong += [f"{name}: {bad}" for bad in wrong_includes(room_of(name), [header for _, header in includes(path)])]
    assert wrong == []


def test_types_of_ucx_stay_with_its_carrier() -> None:
    of_ucx = re.compile(r"\b(ucp|ucs)_\w+|\bUC[PS]_[A-Z]\w+")
    speak = {
        str(path.relative_to(SOURCES).with_suffix(""))
        for path in cpp_files()
        if of_ucx.search(without_comments(path.read_text()))
    }
    assert {name for name in speak if not name.startswith("transport/ucx/")} == SPEAK_UCX
