"""The speedup of communication by the settings over the defaults, within a node and between nodes.

Proved by `verify`, else expected from the measured or simulated paths of the profile.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from waywiser.apply.setting import Settings
from waywiser.errors import InputError
from waywiser.files import read_json
from waywiser.json_fields import Node
from waywiser.points import seconds_at
from waywiser.profile import Pair, Profile
from waywiser.prove import program_proof
from waywiser.prove.evidence import SCHEMA, VERSION
from waywiser.prove.site_use import SiteUse

PROVED, EXPECTED, PREDICTED, TOLD, ASSUMED = (
    "proved",
    "expected, not proved",
    "prediction: simulated",
    "told",
    "assumed",
)
_OFF = {"n", "no", "0", "off"}
_SIZES = range(8, (64 << 20) + 1)
_ANY_SITE = SiteUse()


@dataclass(frozen=True)
class Gain:
    """Speedup over the default, at least 1 if the settings were kept, and its source."""

    factor: float
    basis: str

    @property
    def text(self) -> str:
        """For people."""
        return f"{self.factor:.2f} x" if self.basis == PROVED else f"{self.factor:.2f} x {self.basis}"

    @property
    def saved(self) -> float:
        """The saved fraction of communication time."""
        return 1 - 1 / self.factor


@dataclass(frozen=True)
class NodeGains:
    """The gains of one node type; None where unknown. `programs`: of whole runs of a program, by its name."""

    within: Gain | None = None
    between: Gain | None = None
    programs: Mapping[str, Gain] = field(default_factory=dict)

    def of(self, nodes: int) -> Gain | None:
        """The gain of a job on this many nodes."""
        return self.between if nodes > 1 else self.within

    def or_else(self, other: NodeGains) -> NodeGains:
        """These gains, with unknown ones taken from another object."""
        programs = {**other.programs, **self.programs}
        return NodeGains(self.within or other.within, self.between or other.between, programs)


def same_everywhere(factor: float, basis: str) -> NodeGains:
    """The same gain for all jobs."""
    return NodeGains(Gain(factor, basis), Gain(factor, basis))


def proved_gains(results: Path, fingerprint: str = "") -> dict[str, NodeGains]:
    """By machine, or for one type of machine: the gains of the settings that `verify` kept, the largest if several
    libraries were tried; and those of programs, 1 for a program that the settings do not make faster.
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
            found[machine] = replace(before, between=gain) if between else replace(before, within=gain)
    for file in sorted((results / program_proof.FOLDER).glob("*.json")):
        node = Node(read_json(file, program_proof.SCHEMA, program_proof.VERSION), str(file))
        verdict, machine = node.text("verdict"), node.text("machine")
        if (fingerprint and node.text("fingerprint") != fingerprint) or verdict.startswith(program_proof.NO_VERDICT):
            continue
        factor = node.number("gain", above_zero=True) if verdict == program_proof.FASTER else 1.0
        before = found.get(machine, NodeGains())
        found[machine] = replace(before, programs={**before.programs, node.text("name"): Gain(factor, PROVED)})
    return found


def expected_gain(profile: Profile, settings: Settings, site: SiteUse = _ANY_SITE) -> Gain | None:
    """The gain between GPUs of two nodes if the settings switch GPUDirect RDMA or GDRCopy otherwise than the site has
    them today: UCX paths with these switches against UCX paths with today's; both on, the default, if nothing is told.

    Over the pairs and the sizes up to 64 MiB: their geometric mean, or the time of all messages that the jobs send.
    Raises InputError for a message of a size that has no time.
    """
    switched, today = _switched(settings.environment()), _switched(site.today)
    if switched == today:
        return Gain(1.0, PREDICTED if profile.warning() else EXPECTED) if site.today else None
    usual, chosen = _times(profile, today), _times(profile, switched)
    common = sorted(usual.keys() & chosen.keys())
    if not common:
        return None
    if site.messages:
        factor = _time_of_messages(usual, common, site) / _time_of_messages(chosen, common, site)
    else:
        factor = math.exp(sum(math.log(usual[case] / chosen[case]) for case in common) / len(common))
    return Gain(factor, PREDICTED if profile.warning() else EXPECTED)


def _time_of_messages(
    times: Mapping[tuple[Pair, int], float], common: Sequence[tuple[Pair, int]], site: SiteUse
) -> float:
    """All messages between each pair of GPUs, one after the other."""
    points: dict[Pair, list[tuple[int, float]]] = {}
    for pair, size in common:
        points.setdefault(pair, []).append((size, times[pair, size]))
    total = 0.0
    for size, count in site.messages.items():
        for of_pair in points.values():
            first, last = of_pair[0][0], of_pair[-1][0]
            seconds = seconds_at(of_pair, size) if first <= size <= last else None
            if seconds is None:
                raise InputError(f"--messages: no time of {size} bytes, only of {first} to {last}")
            total += count * seconds
    return total


@dataclass(frozen=True)
class Switched:
    """The size up to which UCX uses GPUDirect RDMA, or that it uses the faster one; and whether it uses GDRCopy."""

    limit: float = math.inf
    by_size: bool = False
    gdrcopy: bool = True

    def takes(self, direct: bool, bytes_: int) -> bool:
        """Whether UCX may send a message of this size on a path with (`direct`) or without GPUDirect RDMA."""
        return self.by_size or direct == (bytes_ <= self.limit)


def _switched(values: Mapping[str, str]) -> Switched:
    told = values.get("UCX_RNDV_MEMTYPE_DIRECT_SIZE", "")
    limit = float(told) if told.isdecimal() else math.inf
    if values.get("UCX_IB_GPU_DIRECT_RDMA", "").lower() in _OFF:
        limit = 0.0
    transports = values.get("UCX_TLS", "")
    no_gdrcopy = transports.startswith("^") and "gdr_copy" in transports
    by_size = "UCX_DISTANCE_BW" in values  # with the real rate UCX switches by itself
    return Switched(limit, by_size, not no_gdrcopy)


def _times(profile: Profile, switched: Switched) -> dict[tuple[Pair, int], float]:
    """Seconds of the fastest UCX path from GPU to GPU of another node with these switches."""
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
