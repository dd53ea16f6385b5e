"""The facts about a machine from which settings are chosen: its topology and its measurements."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from waywiser import _core
from waywiser.other_nodes import device_of, is_elsewhere
from waywiser.profile import Point, Profile, Series, pair_words
from waywiser.units import format_rate

if TYPE_CHECKING:
    from waywiser.simulator.cluster import Cluster

_LARGE = 1 << 20


@dataclass(frozen=True)
class Evidence:
    """A rate in bytes per second, its source, and whether it was measured."""

    rate: float
    text: str
    measured: bool


@dataclass(frozen=True)
class Machine:
    """A topology, and a profile if there is one; `purpose` of switches that must serve all sizes between nodes.

    `cluster`: the simulated cluster that it is part of; None: two nodes of its type.
    """

    topology: _core.Topology
    profile: Profile | None = None
    purpose: str = "mixed"
    cluster: Cluster | None = None

    @property
    def label(self) -> str:
        """The warning that precedes all output; empty for a measured profile."""
        if self.profile is None:
            return "no profile: only from the description of the machine, not a measurement"
        return self.profile.warning()

    @property
    def is_simulated(self) -> bool:
        """Whether the simulator may answer for it: its times come from there, or only its description is known."""
        return self.profile is None or self.profile.simulated

    def rate(self, mechanism: str, source: str, destination: str, **parameters: str) -> Evidence | None:
        """The best large transfer of a mechanism between memories ("gpu1") or kinds of memory ("host", "gpu")."""
        best: tuple[float, Series, Point] | None = None
        for one in self.profile.series if self.profile else ():
            if one.operation not in ("latency", "streaming") or not _fits(
                one, mechanism, source, destination, parameters
            ):
                continue
            for point in one.points:
                if point.bytes >= _LARGE and (best is None or point.rate > best[0]):
                    best = (point.rate, one, point)
        if best is None:
            return None
        rate, one, point = best
        measured = not (self.profile and self.profile.warning())
        how = f"{format_rate(rate)} {'measured' if measured else 'simulated'} at {point.bytes >> 20} MiB"
        return Evidence(rate, f"{one.path.label} {pair_words(one.path.pair, one.path.processes)}: {how}", measured)

    def curve(self, transports: str) -> dict[int, Point]:
        """Latency of UCX between two host processes over given transports: size -> point."""
        for one in self.profile.series if self.profile else ():
            if one.operation == "latency" and _fits(one, "ucx", "host", "host", {"transports": transports}):
                return {point.bytes: point for point in one.points}
        return {}

    def peer_rate(self) -> Evidence | None:
        """The rate from GPU to GPU: measured, else the nominal rate of the slowest pair's links."""
        found = self.rate("copy_engine", "gpu", "gpu")
        gpus = self.topology.ids("gpu")
        if found or len(gpus) < 2:
            return found
        placement = self.topology.place(len(gpus), False)
        slowest = placement.slowest_pair
        if placement.pairs_unknown or not slowest:  # unknown links may be faster
            return None
        return Evidence(slowest, f"slowest pair: {format_rate(slowest)} by the data sheet of its links", False)


def _kind(place: str) -> str:
    """ "gpu0", or "other:gpu0" of a node of any type."""
    return f"other:{device_of(place)}" if is_elsewhere(place) else place


def _is(place: str, wanted: str) -> bool:
    """Whether it is this memory ("gpu1"), or one of this kind ("gpu", "other:gpu")."""
    return wanted in (_kind(place), _kind(place).rstrip("0123456789"))


def _fits(one: Series, mechanism: str, source: str, destination: str, parameters: dict[str, str]) -> bool:
    path = one.path
    own = path.source == path.destination and source == "gpu"
    kinds = _is(path.source, source) and _is(path.destination, destination)
    return path.mechanism == mechanism and kinds and not own and parameters.items() <= dict(path.parameters).items()
