"""Types of node that a profile or plan has paths to: by fingerprint in files, by name for users.

A place of such a node is "b7ef00aa67f28849:gpu0" in files and in the core, "hse-a:gpu0" in Python's values.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from waywiser.errors import InputError
from waywiser.json_fields import clean

_TYPED = re.compile(r"([0-9a-f]{16}|other):((?:host|gpu)\d{1,4})")
PLACE = re.compile(r"([A-Za-z0-9._-]{1,64}:)?(host|gpu)\d{1,4}")
_FINGERPRINT = re.compile(r"[0-9a-f]{16}")
_MOST = 256
_NOT_PLAIN = (str, list, dict)  # of the values of JSON
_LONGEST = 65536  # a mix of a halo exchange names the variant of each kind of sides


def device_of(place: str) -> str:
    """ "hse-a:gpu0" -> "gpu0"."""
    return place.rpartition(":")[2]


def is_elsewhere(place: str) -> bool:
    """Whether a place is on another node."""
    return ":" in place


def names_of(value: Any) -> dict[str, str]:
    """Fingerprint -> name of the other nodes of a profile, plan or verification; also "other" in version 1."""
    if not isinstance(value, dict):
        return {}
    listed = value.get("other_nodes")
    nodes = [one for one in listed if isinstance(one, dict)][:_MOST] if isinstance(listed, list) else []
    state = value.get("state")
    older = state.get("other") if isinstance(state, dict) and value.get("version") == 1 else None
    nodes += [older] if isinstance(older, dict) else []
    names: dict[str, str] = {}
    for node in nodes:
        fingerprint, machine = str(node.get("fingerprint", "")), clean(str(node.get("machine", "")))
        if not _FINGERPRINT.fullmatch(fingerprint):
            continue
        name = re.sub(r"[^A-Za-z0-9._-]", "-", machine)[:40] or fingerprint
        names[fingerprint] = f"{name}-{fingerprint[:4]}" if name in names.values() else name
    if older and names:
        names["other"] = next(iter(names.values()))
    return names


def for_people(value: Any, names: Mapping[str, str]) -> Any:
    """The JSON `value`, with names of other nodes in place of fingerprints, and all text safe on a terminal."""
    told: dict[str, str] = {}  # a profile of a million values has the same few texts

    def text_of(text: str) -> str:
        if text not in told:
            told[text] = clean(text, _LONGEST)
        return told[text]

    def place_or_text(text: str) -> str:
        found = _TYPED.fullmatch(text) if names else None
        return f"{names[found[1]]}:{found[2]}" if found and found[1] in names else text_of(text)

    def told_of(one: Any) -> Any:
        if isinstance(one, dict):
            return {text_of(key): told_of(each) if isinstance(each, _NOT_PLAIN) else each for key, each in one.items()}
        if isinstance(one, list):
            return [told_of(each) if isinstance(each, _NOT_PLAIN) else each for each in one]
        return place_or_text(one) if isinstance(one, str) else one

    return told_of(value)


def for_core(place: str, names: Mapping[str, str]) -> str:
    """A place in the form of the core. "other:gpu0" is on the only other type of node. Raises InputError."""
    name, colon, device = place.rpartition(":")
    known = {text: key for key, text in names.items() if key != "other"}
    if not colon or not known:
        return place
    if name == "other" and len(known) == 1:
        return f"{next(iter(known.values()))}:{device}"
    if name in known:
        return f"{known[name]}:{device}"
    if name in known.values():
        return place
    raise InputError(f"{place!r}: there are paths to {', '.join(f'{one}:{device}' for one in known)}")
