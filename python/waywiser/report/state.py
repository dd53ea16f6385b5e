"""The state of the machine during the measurement as a table: words for the keys, three digits for figures."""

from __future__ import annotations

import re
from typing import Any

from waywiser.checked import clean
from waywiser.profile import Profile
from waywiser.report.markup import Markup, table
from waywiser.results import Results
from waywiser.units import format_seconds

_MOST_ROWS, _LONGEST = 400, 500
_PAIR = re.compile(r"\b((?:[\w.-]+:)?(?:host|gpu)\d+)(>>?)((?:[\w.-]+:)?(?:host|gpu)\d+)\b")


def state_table(profile: Profile, results: Results) -> Markup:
    """Machine, software, conditions, notes; at most 400 rows."""
    rows = [["Machine", profile.machine], ["Fingerprint", profile.fingerprint], ["Back end", profile.backend]]
    rows += [["Measured", profile.created]]
    topology = results.topology or {}
    rows += _flat(topology.get("software", {}), "software")
    rows += _flat(profile.state)
    notes = topology.get("notes")
    rows += [["note", clean(note)] for note in notes if isinstance(note, str)] if isinstance(notes, list) else []
    return table(("What", "Value"), rows[:_MOST_ROWS], class_="state")


def _flat(value: Any, name: str = "", depth: int = 0) -> list[list[str]]:
    if isinstance(value, dict) and depth < 6:
        return [row for key, one in value.items() for row in _flat(one, f"{name} {clean(str(key))}".strip(), depth + 1)]
    if isinstance(value, list) and value and all(isinstance(one, str) for one in value):
        return [[_words(name) if not index else "", _text(one, name)] for index, one in enumerate(value)]
    return [[_words(name), _text(value, name)]]


def _words(name: str) -> str:
    return name.replace("_", " ")


def _text(value: Any, name: str) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return format_seconds(value) if name.endswith("seconds") and value > 0 else f"{value:.4g}"
    if isinstance(value, list):
        return _cut(", ".join(_text(one, name) for one in value)) or "none"
    return _cut(clean(str("" if value is None else value)))


def _cut(text: str) -> str:
    """At most 500 characters, ending with a whole word; pairs in words."""
    text = _PAIR.sub(lambda found: f"{found[1]} to {found[3]}{', two processes,' * (found[2] == '>>')}", text)
    return text if len(text) <= _LONGEST else text[:_LONGEST].rpartition(" ")[0] + " ..."
