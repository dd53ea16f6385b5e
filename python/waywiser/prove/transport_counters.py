"""The device that carried the bytes of each variant of `verify`: its counters before and after every run, on this node.

Counters show the transport that the settings select, time shows its speed. The two can disagree.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from waywiser.monitor.counters import KIND_NAMES, LINKS, Sample, moved_between, packets_between
from waywiser.prove.benchmarks import Benchmark, Times
from waywiser.prove.prove import AGAIN, Proof
from waywiser.units import format_bytes

_NOTICED = 1 << 20  # bytes a run: less is background traffic
_PACKET = 4096  # bytes: the largest payload of a RoCE packet


@dataclass(frozen=True)
class Carried:
    """Bytes by kind of link over `runs` runs, and packets where a device does not count bytes."""

    runs: int = 0
    bytes: Mapping[str, int] = field(default_factory=dict)
    packets: Mapping[str, int] = field(default_factory=dict)

    def plus(self, before: Sample, after: Sample) -> Carried:
        """With one more run."""
        more = moved_between(before, after), packets_between(before, after)
        return Carried(self.runs + 1, _sum(self.bytes, more[0]), _sum(self.packets, more[1]))

    @property
    def kinds(self) -> list[str]:
        """The kinds of link that carried more than background traffic, RDMA first.

        The kernel's network also counts the packets of a software RDMA card.
        """
        return [kind for kind in LINKS if self._bytes(kind) >= _NOTICED * max(self.runs, 1)]

    def _bytes(self, kind: str) -> int:
        return self.bytes.get(kind, 0) + self.packets.get(kind, 0) * _PACKET

    @property
    def text(self) -> str:
        """For people: a mean run."""
        told = []
        for kind in self.kinds:
            counted = self.bytes.get(kind, 0)
            many = format_bytes(counted // self.runs) if counted else f"{self.packets[kind] // self.runs:,} packets"
            told.append(f"{KIND_NAMES[kind]} {many} a run")
        return ", ".join(told) or "no device's counter moved"


def _sum(one: Mapping[str, int], two: Mapping[str, int]) -> dict[str, int]:
    return {kind: one.get(kind, 0) + two.get(kind, 0) for kind in {**one, **two}}


class CountedBenchmark:
    """A benchmark that also counts; `carried` by the variables of the variant."""

    def __init__(self, benchmark: Benchmark, counters: Callable[[], Sample]) -> None:
        self._benchmark, self._counters = benchmark, counters
        self._carried: dict[frozenset[tuple[str, str]], Carried] = {}

    def __call__(self, variables: Mapping[str, str]) -> Times:
        before = self._counters()
        times = self._benchmark(variables)
        key = frozenset(variables.items())
        self._carried[key] = self._carried.get(key, Carried()).plus(before, self._counters())
        return times

    def carried(self, proof: Proof) -> dict[str, Carried]:
        """By the name of each variant of a proof."""
        found = {one.name: self._carried.get(frozenset(one.variables.items())) for one in proof.variants}
        return {name: one for name, one in found.items() if one and name != AGAIN}


def transport_lines(proof: Proof, carried: Mapping[str, Carried]) -> list[str]:
    """What counters prove about the transport of each variant, and whether its speed agrees. Empty within a node."""
    base = carried.get(proof.base, Carried())
    if not any(one.kinds for one in carried.values()):
        return []
    lines = [f"transport  {proof.base}: {base.text}"]
    for name, verdict in proof.verdicts.items():
        one = carried.get(name)
        if one is None or one.kinds == base.kinds:
            continue
        lines.append(f"transport  {name}: {one.text}")
        if not verdict.wins:
            lines.append(f"{name} changes the transport, and this is proved. It is not faster where it was measured")
    return lines
