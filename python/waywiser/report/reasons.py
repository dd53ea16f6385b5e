"""Unavailable mechanisms; a reason that holds for many pairs appears once."""

from __future__ import annotations

import re
from dataclasses import dataclass

from waywiser.profile import Pair, Unavailable, pair_words

_DEVICE = re.compile(r"\b(GPU|gpu|host) ?\d+\b")


@dataclass(frozen=True)
class Reason:
    """One mechanism and reason, and the pairs (with their number of processes) for which it holds."""

    mechanism: str
    reason: str
    pairs: tuple[tuple[Pair, int], ...]

    def pairs_text(self, most: int) -> str:
        """The pairs, at most `most` of them by name."""
        names = [pair_words(pair, processes) for pair, processes in self.pairs[:most]]
        rest = len(self.pairs) - len(names)
        return ", ".join(names) + (f" and {rest} more" if rest else "")


def grouped_reasons(unavailable: tuple[Unavailable, ...]) -> list[Reason]:
    """The reasons in the order of the profile; reasons that differ only in device numbers count as one."""
    found: dict[tuple[str, str], tuple[str, list[tuple[Pair, int]]]] = {}
    for one in unavailable:
        reason = one.reason.removeprefix(f"{one.mechanism}: ")
        key = (one.mechanism, _DEVICE.sub(r"\1", reason))
        pairs = found.setdefault(key, (reason, []))[1]
        item = ((one.source, one.destination), one.processes)
        if item not in pairs:
            pairs.append(item)
    return [Reason(mechanism, reason, tuple(pairs)) for (mechanism, _), (reason, pairs) in found.items()]
