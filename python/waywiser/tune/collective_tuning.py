"""The part of `waywiser tune` for collectives, messages on streams and prepared exchanges: times their algorithms."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from waywiser.bench.team import TeamError
from waywiser.profile import COLLECTIVES
from waywiser.progress import bar, say
from waywiser.results import Results
from waywiser.tune.ways import Ranks, measured, ranks_to_time


def collectives_into(results: Results, gpus: int, seconds: float, fresh: bool) -> None:
    """Times the collectives that the profile lacks, in about `seconds` for each kind, and writes it.

    An optional step: if it fails, prints one line with the reason and goes on.
    """
    profile: dict[str, Any] = json.loads(results.needed_profile_text())
    known: list[dict[str, Any]] = [] if fresh else list(profile.get("collectives") or [])
    new: list[dict[str, Any]] = []
    for ranks in ranks_to_time(str(profile["backend"]), gpus):
        ranks = _missing(ranks, known)
        if not ranks.operations:
            continue
        try:
            with bar("collectives") as show:
                new += measured(ranks, results.folder, seconds, show)
        except TeamError as error:
            say(f"no collectives of {_text(ranks)} measured: {error}")
    if new:
        profile["collectives"] = known + new
        results.write("profile", json.dumps(profile, indent=1))


def _missing(ranks: Ranks, known: list[dict[str, Any]]) -> Ranks:
    """Returns no collectives if some are known: the time was too short for the others."""
    there = {one["operation"] for one in known if (one["ranks"], one["memory"]) == (ranks.count, ranks.memory)}
    if there.intersection(COLLECTIVES):
        there.update(COLLECTIVES)
    return replace(ranks, operations=tuple(one for one in ranks.operations if one not in there))


def _text(ranks: Ranks) -> str:
    return f"{ranks.count} ranks with arrays in {ranks.memory} memory"
