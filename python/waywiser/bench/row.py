"""One line of a benchmark's table, and its parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from waywiser.bench.operations import Operation
from waywiser.points import quantile


@dataclass(frozen=True)
class Figures:
    """Seconds of one message or call of one library. `spread`: the medians of the fastest and of the slowest rank."""

    median: float
    p99: float
    mean: float
    spread: tuple[float, float]
    samples: int
    calls: int
    compute: float = 0.0
    alone: float = 0.0

    @property
    def overlap(self) -> float:
        """The share of the operation's own time that computing hid: 0 to 1."""
        return min(1.0, max(0.0, 1 - (self.median - self.compute) / self.alone)) if self.alone else 0.0

    def as_json(self) -> dict[str, float | int]:
        """Times in microseconds."""
        told: dict[str, float | int] = {
            "us": _us(self.median), "p99_us": _us(self.p99), "avg_us": _us(self.mean), "min_us": _us(self.spread[0]),
            "max_us": _us(self.spread[1]), "samples": self.samples, "calls_per_sample": self.calls,
        }  # fmt: skip
        if self.alone:
            told |= {"compute_us": _us(self.compute), "alone_us": _us(self.alone), "overlap": round(self.overlap, 3)}
        return told


def _us(seconds: float) -> float:
    return float(f"{seconds * 1e6:.5g}")


@dataclass
class Row:
    """One operation at one size: our figures, and those of other libraries by name."""

    operation: Operation
    memory: str
    ranks: int
    bytes: int
    ours: Figures
    peers: dict[str, Figures] = field(default_factory=dict)
    simulated: bool = False
    mode: str = "blocking"

    def rate(self, of: Figures) -> float:
        """Bytes per second: the sum of all pairs and directions that move at once."""
        pairs = self.ranks // 2 if self.operation.name.startswith("multi_") else 1
        return self.bytes * self.operation.ways * pairs / of.median if self.bytes else 0.0

    def messages(self, of: Figures) -> float:
        """Messages per second, of all pairs together."""
        return (self.ranks // 2 if self.operation.name.startswith("multi_") else 1) / of.median

    def ratio(self, name: str) -> float:
        """Our time divided by a peer's: below 1 is faster."""
        return self.ours.median / self.peers[name].median

    def as_json(self) -> dict[str, Any]:
        told: dict[str, Any] = {
            "operation": self.operation.name, "memory": self.memory, "mode": self.mode, "ranks": self.ranks,
            "bytes": self.bytes,
            **self.ours.as_json(), "gb_per_s": float(f"{self.rate(self.ours) / 1e9:.5g}"),
            "peers": {name: _us(figures.median) for name, figures in self.peers.items()},
        }  # fmt: skip
        if self.peers:
            told["ratios"] = {name: float(f"{self.ratio(name):.4g}") for name in self.peers}
            told["peer_figures"] = {name: figures.as_json() for name, figures in self.peers.items()}
        if self.simulated:
            told["simulated"] = True
        return told


def figures_of(
    operation: Operation, by_rank: Sequence[Sequence[float]], window: int, calls: int, compute: float = 0.0,
    alone: float = 0.0,
) -> Figures:  # fmt: skip
    """Converts seconds of a call, for each rank and sample, to seconds of a message.

    For collectives the mean of all ranks counts; else the ranks that begin: rank 0, or the first half of the pairs.
    """
    parts = (2 if operation.halves else 1) * window
    if operation.collective or operation.shape == "overlap":
        deciding = by_rank
    else:
        deciding = by_rank[: max(1, len(by_rank) // 2) if operation.name.startswith("multi_") else 1]
    samples = [sum(times) / len(deciding) / parts for times in zip(*deciding, strict=True)]
    medians = [quantile(times, 0.5) / parts for times in deciding]
    return Figures(
        quantile(samples, 0.5), quantile(samples, 0.99), sum(samples) / len(samples), (min(medians), max(medians)),
        len(samples), calls, compute, alone,
    )  # fmt: skip
