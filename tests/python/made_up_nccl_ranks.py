"""Ranks of NCCL with made-up times."""

from __future__ import annotations

import time
from pathlib import Path

from waywiser.tune.nccl_rows import Series
from waywiser.tune.nccl_tuning import NcclTeams, Offers, measured

NAME = "NCCL 2.27.5"
OWN = "Ring(channels=3,protocol=LL128)"
NEITHER = Offers(nvls=False, chunks=False)


class MadeUpRanks:
    """Small all-reduces are fastest by the tree, large ones with 8 channels; the ring, which takes `ring` times as long
    as the default, is never; all else takes `others` times as long as without a plug-in, a tuner that says nothing
    `silent` times, what NCCL takes by itself (OWN) as long."""

    version, adapts = NAME, False

    def __init__(self, ring: float = 0.8, silent: float = 1.0, others: float = 1.02) -> None:
        self.ring, self.silent, self.others, self.ways = ring, silent, others, set[str]()

    def slice(self, request: str, patience: float) -> list[list[float]]:
        words = request.split()
        operation, size, samples = words[0], int(words[3]), int(words[6])
        way = words[10] if len(words) > 10 else ""
        self.ways.add(way)
        seconds = 1e-5 + size / 1e11
        if way in ("default", OWN):
            seconds *= self.silent if way == "default" else 1.0
        elif operation == "all_reduce" and way:
            fast = way == "Tree(protocol=LL)" if size <= 1 << 15 else way == "Ring(channels=8,protocol=Simple)"
            seconds *= 0.5 if fast else self.ring if way == "Ring(protocol=Simple)" else self.others
        elif way:
            seconds *= self.others
        return [[seconds * (1 + 1e-4 * n) for n in range(samples)] for _ in range(2)]

    def close(self) -> None: ...


def made_up_series(
    ring: float = 0.8, silent: float = 1.0, others: float = 1.02, logs: Path | None = None
) -> list[Series]:
    teams = NcclTeams(MadeUpRanks(), MadeUpRanks(ring, silent, others), logs=logs)
    return measured(teams, 2, NEITHER, time.monotonic() + 600, lambda *told: None)
