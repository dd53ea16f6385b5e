"""A benchmark inside a job that a launcher has started: rank 0 conducts, the others follow its requests."""

from __future__ import annotations

from waywiser import _core
from waywiser.bench.team import NotOffered

_END = "end"


class JobTeam:
    """All ranks of the job; rank 0 sends them the requests."""

    version = ""
    adapts = False

    def __init__(self, core: _core.BenchRank) -> None:
        self._core = core

    def slice(self, request: str, patience: float) -> list[list[float]]:
        self._core.share(request)
        return _timed(self._core, request)

    def close(self) -> None:
        self._core.share(_END)


def _timed(core: _core.BenchRank, request: str) -> list[list[float]]:
    try:
        times = core.run(request)
    except Exception as error:
        if getattr(error, "kind", "") == "unavailable":
            raise NotOffered(str(error)) from error
        raise
    return [list(values) for values in core.collect(times)]


def follow(core: _core.BenchRank) -> None:
    """The loop of every rank except 0, until rank 0 is done."""
    while (request := core.share("")) != _END:
        try:
            _timed(core, request)
        except NotOffered:
            continue
