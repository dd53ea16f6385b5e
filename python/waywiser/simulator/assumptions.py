"""Numbers that are not known for a part of a simulated machine, as the core names them in its answers."""

from __future__ import annotations

from typing import Any

from waywiser.json_fields import clean

_KEYS = ("part", "parameter", "what", "assumed")
Assumption = dict[str, str]  # with these keys


def added(known: list[Assumption], answer: dict[str, Any]) -> list[Assumption]:
    """`known` and those of a further answer, each once."""
    return known + [one for one in answer.get("assumed", []) if one not in known]


def of_profile(state: dict[str, Any]) -> list[Assumption]:
    """Those that a simulated profile was made with, as its file says."""
    told = state.get("assumed")
    entries = [one for one in told if isinstance(one, dict)] if isinstance(told, list) else []
    return [{key: clean(str(one.get(key, ""))) for key in _KEYS} for one in entries]


def lines(assumed: list[Assumption]) -> list[str]:
    """ "not known for Intel Xeon Platinum 8380: GPUDirect read limit; assumed: the PCIe link's", each part and
    what stands for it in one line."""
    groups: dict[tuple[str, str], list[str]] = {}
    for one in assumed:
        groups.setdefault((one["part"], one["assumed"]), []).append(one["what"])
    return [
        f"not known for {part}: {', '.join(dict.fromkeys(what))}; assumed: {instead}"
        for (part, instead), what in groups.items()
    ]
