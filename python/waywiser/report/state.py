"""The state of the machine during the measurement as a table: words for the keys, three digits for figures."""

from __future__ import annotations

import re
from typing import Any

from waywiser.json_fields import clean
from waywiser.profile import Profile
from waywiser.report.markup import Child, Markup, el, table
from waywiser.results import Results
from waywiser.units import format_seconds

_MOST_ROWS, _LONGEST = 400, 500
_MOST_AT_ONCE = 4  # lines of a list; more of them are folded
_PAIR = re.compile(r"\b((?:[\w.-]+:)?(?:host|gpu)\d+)(>>?)((?:[\w.-]+:)?(?:host|gpu)\d+)\b")


def state_table(profile: Profile, results: Results) -> Markup:
    """Machine, software, conditions, notes; at most 400 rows."""
    rows: list[list[Child]] = [["Machine", profile.machine], ["Fingerprint", profile.fingerprint]]
    rows += [["Back end", profile.backend]]
    rows += [[profile.verb.capitalize(), profile.created]] if profile.created else []
    topology = results.topology or {}
    rows += _flat(topology.get("software", {}), "software")
    rows += _flat(profile.state)
    notes = topology.get("notes")
    told = [clean(note) for note in notes if isinstance(note, str)] if isinstance(notes, list) else []
    rows += [["notes on the topology", _lines(told)]] if told else []
    return table(("What", "Value"), rows[:_MOST_ROWS], class_="state")


def _flat(value: Any, name: str = "", depth: int = 0) -> list[list[Child]]:
    if isinstance(value, dict) and depth < 6:
        return [row for key, one in value.items() for row in _flat(one, f"{name} {clean(str(key))}".strip(), depth + 1)]
    if isinstance(value, list) and value and all(isinstance(one, (str, dict)) for one in value):
        return [[_words(name), _lines([_text(one, name) for one in value])]]
    return [[_words(name), _text(value, name)]]


def _lines(texts: list[str]) -> Child:
    if len(texts) == 1:
        return texts[0]
    lines = el("ul", *(el("li", text) for text in texts))
    return lines if len(texts) <= _MOST_AT_ONCE else el("details", el("summary", f"{len(texts)} of them"), lines)


def _words(name: str) -> str:
    return name.replace("_", " ")


def _text(value: Any, name: str) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return format_seconds(value) if name.endswith("seconds") and value > 0 else f"{value:.4g}"
    if isinstance(value, dict):
        return _cut(", ".join(f"{_words(clean(str(key)))} {_text(one, str(key))}" for key, one in value.items()))
    if isinstance(value, list):
        return _cut(", ".join(_text(one, name) for one in value)) or "none"
    return _cut(clean(str("" if value is None else value)))


def _cut(text: str) -> str:
    """At most 500 characters, ending with a whole word; pairs in words."""
    text = _PAIR.sub(lambda found: f"{found[1]} to {found[3]}{', two processes,' * (found[2] == '>>')}", text)
    return text if len(text) <= _LONGEST else text[:_LONGEST].rpartition(" ")[0] + " ..."
