"""How much faster communication is with the settings than with the defaults: within a node, and between nodes.

Proved by `verify`, else expected from the roads of the profile: measured ones, or those of a simulation.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

from waywiser.apply.evidence import SCHEMA, VERSION
from waywiser.apply.setting import Settings
from waywiser.checked import Node
from waywiser.files import read_json
from waywiser.profile import Pair, Profile

PROVED, EXPECTED, PREDICTED, TOLD, ASSUMED = (
    "proved",
    "expected, not proved",
    "prediction: simulated",
    "told",
    "assumed",
)
_OFF = {"n", "no", "0", "off"}
_SIZES = range(8, (64 << 20) + 1)


@dataclass(frozen=True)
class Gain:
    """Speed over the default, at least 1 where it was kept, and where that comes from."""

    factor: float
    basis: str

    @property
    def text(self) -> str:
        """For people."""
        return f"{self.factor:.2f} x" if self.basis == PROVED else f"{self.factor:.2f} x {self.basis}"

    @property
    def saved(self) -> float:
        """The part of communication time that is saved."""
        return 1 - 1 / self.factor


@dataclass(frozen=True)
class NodeGains:
    """The gains of one node type; None where unknown."""

    within: Gain | None = None
    between: Gain | None = None

    def of(self, nodes: int) -> Gain | None:
        """For a job on so many nodes."""
        return self.between if nodes > 1 else self.within

    def or_else(self, other: NodeGains) -> NodeGains:
        """Completed by another one."""
        return NodeGains(self.within or other.within, self.between or other.between)


def same_everywhere(factor: float, basis: str) -> NodeGains:
    """One gain for all jobs."""
    return NodeGains(Gain(factor, basis), Gain(factor, basis))


def proved_gains(results: Path, fingerprint: str = "") -> dict[str, NodeGains]:
    """By machine, or for one type of machine: the gains of the settings that `verify` kept; the largest if several
    libraries were tried.
    """
    found: dict[str, NodeGains] = {}
    for file in sorted((results / "evidence").glob("*.json")):
        node = Node(read_json(file, SCHEMA, VERSION), str(file))
        if fingerprint and node.text("fingerprint", "") != fingerprint:
            continue
        machine, between = node.text("machine"), any(True for _ in node.items("nodes"))
        for step in node.items("steps"):
            verdicts, kept = step.child("verdicts"), step.text("kept")
            factor = verdicts.child(kept).number("gain", above_zero=True) if verdicts.has(kept) else 1.0
            before = found.get(machine, NodeGains())
            old = before.between if between else before.within
            gain = Gain(max(factor, old.factor if old else 1.0), PROVED)
            found[machine] = NodeGains(before.within, gain) if between else NodeGains(gain, before.between)
    return found


def expected_gain(profile: Profile, settings: Settings) -> Gain | None:
    """Between GPUs of two nodes, where the settings switch GPUDirect RDMA or GDRCopy: the roads of UCX as they are
    then, against those with both on, as by default.

    Geometric mean over the pairs and the sizes up to 64 MiB.
    """
    switched = _switched(settings)
    if switched == Switched():
        return None
    usual, chosen = _times(profile, Switched()), _times(profile, switched)
    common = sorted(usual.keys() & chosen.keys())
    if not common:
        return None
    mean = sum(math.log(usual[case] / chosen[case]) for case in common) / len(common)
    return Gain(math.exp(mean), PREDICTED if profile.warning() else EXPECTED)


@dataclass(frozen=True)
class Switched:
    """Up to how many bytes UCX takes GPUDirect RDMA, or that it takes what is faster; and whether it takes GDRCopy."""

    limit: float = math.inf
    by_size: bool = False
    gdrcopy: bool = True

    def takes(self, direct: bool, bytes_: int) -> bool:
        """Whether a message of this size may go with GPUDirect RDMA, or without."""
        return self.by_size or direct == (bytes_ <= self.limit)


def _switched(settings: Settings) -> Switched:
    values = settings.environment()
    told = values.get("UCX_RNDV_MEMTYPE_DIRECT_SIZE", "")
    limit = float(told) if told.isdecimal() else math.inf
    if values.get("UCX_IB_GPU_DIRECT_RDMA", "").lower() in _OFF:
        limit = 0.0
    transports = values.get("UCX_TLS", "")
    no_gdrcopy = transports.startswith("^") and "gdr_copy" in transports
    by_size = "UCX_DISTANCE_BW" in values  # with the real rate UCX changes over by itself
    return Switched(limit, by_size, not no_gdrcopy)


def _times(profile: Profile, switched: Switched) -> dict[tuple[Pair, int], float]:
    """Seconds of the fastest road of UCX from GPU to GPU of another node with these switches."""
    found: dict[tuple[Pair, int], float] = {}
    for one in profile.series:
        path = one.path
        far = path.source.startswith("gpu") and ":gpu" in path.destination
        parameters = dict(path.parameters)
        if path.mechanism != "ucx" or one.operation != "latency" or not far:
            continue
        if parameters.get("gdrcopy", "on") != ("on" if switched.gdrcopy else "off"):
            continue
        for point in one.points:
            if point.bytes in _SIZES and switched.takes(parameters.get("gdr", "on") == "on", point.bytes):
                case = path.pair, point.bytes
                found[case] = min(point.seconds, found.get(case, math.inf))
    return found
