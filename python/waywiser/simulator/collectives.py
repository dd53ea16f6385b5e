"""Collectives on a simulated cluster over sizes, algorithms and numbers of nodes."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from waywiser import _core
from waywiser.simulator.assumptions import Assumption, added
from waywiser.simulator.cluster import Cluster
from waywiser.simulator.costs import costs_json
from waywiser.simulator.variants import Variant
from waywiser.stages import Show, Watch

# NCCL over all NICs at once, not algorithms of a group: "nccl" is the fastest of what the others are.
NCCL = "nccl"
OF_NCCL = (NCCL, "nccl_ring", "nccl_tree", "nccl_nvls", "nccl_nvls_tree", "nccl_collnet")
# How a receiver of NCCL's rings and trees knows that data have come.
PROTOCOLS = ("Simple", "LL", "LL128")
# Operation -> algorithms that are compared by default.
COMPARED = {
    "all_reduce": ("ring", "double_tree", "hierarchical", NCCL, "in_network"),
    "reduce": ("direct", "binomial_tree"),
    "reduce_scatter": ("ring", "recursive_halving", NCCL),
    "broadcast": ("binomial_tree", "scatter_all_gather", "chain", "double_tree"),
    "all_gather": ("ring", "bruck", NCCL),
    "gather": ("direct", "binomial_tree"),
    "scatter": ("direct", "binomial_tree"),
    "all_to_all": ("direct", "pairwise", "bruck"),
    "barrier": ("dissemination",),
    "neighbor_exchange": ("direct",),
}
# What else a group and NCCL have for an operation: `--vary algorithm` takes these, too.
FURTHER = {
    "all_reduce": ("one_shot", "two_shot", "recursive_doubling", "halving_doubling", *OF_NCCL[1:]),
    "reduce_scatter": ("direct", "nccl_ring"),
    "all_gather": ("direct", "recursive_doubling", "nccl_ring"),
}
# Operation -> what a rank's link carries of the whole buffer of a ring of n ranks, in parts of n: the convention of
# nccl-tests (its doc/PERFORMANCE.md), by which bandwidths of different numbers of ranks compare.
_BUS_PARTS: dict[str, Callable[[int], int]] = {
    "all_reduce": lambda ranks: 2 * (ranks - 1),
    "reduce_scatter": lambda ranks: ranks - 1,
    "all_gather": lambda ranks: ranks - 1,
    "all_to_all": lambda ranks: ranks - 1,
    "broadcast": lambda ranks: ranks,
    "reduce": lambda ranks: ranks,
}
# GPUDirect RDMA. "near": on where GPU and NIC share a PCIe switch, which is NCCL's default; "write": NICs write GPU
# memory and read host memory. "best": for each size "on" or "off", with which the whole operation takes less time.
GDR = ("off", "on", "near", "write")
BEST, _SETTINGS = "best", ("on", "off")


@dataclass(frozen=True)
class Case:
    """One run; `seconds` is 0 if it is not possible, and `unavailable` says why."""

    algorithm: str
    direct: str
    nodes: int
    ranks: int
    size: int
    seconds: float
    messages: int = 0
    rounds: int = 0
    rounds_run: int = 0
    unavailable: str = ""
    chosen: dict[str, Any] | None = None  # by "nccl": algorithm, protocol, and all that were tried
    variant: str = ""
    setting: str = ""  # of GPUDirect RDMA, with which the time is

    def bus_bandwidth(self, operation: str) -> float | None:
        """Bytes per second by the convention of nccl-tests; None where it has none."""
        parts = _BUS_PARTS.get(operation)
        if parts is None or not self.seconds or self.ranks < 2:
            return None
        return parts(self.ranks) / self.ranks * self.size / self.seconds

    def label(self) -> str:
        return self.algorithm + ("" if self.direct == BEST else f", gdr {self.direct}") + self.of_variant()

    def of_variant(self) -> str:
        return f", {self.variant}" if self.variant else ""


@dataclass
class Collective:
    """A collective on a cluster over ranges of parameters."""

    topology: Any
    cluster: Cluster
    operation: str
    sizes: Sequence[int]
    algorithms: Sequence[str]
    nodes: Sequence[int] = ()  # empty: that of the cluster
    direct: Sequence[str] = (BEST,)
    ranks: int = 0
    order: Sequence[int] = ()  # the GPUs of a node that have ranks, in their order; empty: all by number
    # Of NCCL's: groups of GPUs of a node that run the operation at once, each with the same GPUs of the other nodes.
    groups: Sequence[Sequence[int]] = ()
    protocol: str = PROTOCOLS[0]  # of nccl_ring and nccl_tree
    pxn: bool = False  # a message to another rail leaves by the GPU beside the NIC of that rail
    placement: str = ""  # of the nodes; empty: as the cluster says
    machines: Sequence[Any] = ()  # topologies of further types of node
    beside: dict[str, Any] = field(default_factory=dict)  # what another job does all the time, in the core's words
    variants: Sequence[Variant] = ()  # empty: one, as the other fields say
    trace: bool = False
    last_trace: dict[str, Any] = field(default_factory=dict)
    assumed: list[Assumption] = field(default_factory=list)

    def run(self, show: Show) -> list[Case]:
        """By every variant, and for each by every number of nodes, algorithm, setting and size."""
        cases = []
        for variant in self.variants:
            cluster = replace(self.cluster, network={**self.cluster.network, **variant.network})
            one = replace(self, cluster=cluster, variants=(), **variant.settings)
            cases += [replace(case, variant=variant.label) for case in one.run(show)]
            self.last_trace = one.last_trace
            self.assumed += [line for line in one.assumed if line not in self.assumed]
        return cases if self.variants else self._run(show)

    def _run(self, show: Show) -> list[Case]:
        wanted = [
            (algorithm, direct, nodes, size)
            for nodes in self.nodes or (self.cluster.nodes,)
            for algorithm in self.algorithms
            for direct in self.direct
            for size in self.sizes
        ]
        tried = [
            (case, setting)
            for case in wanted
            for setting in (_SETTINGS if case[1] == BEST and case[2] > 1 else case[1:2])
        ]

        results = self._simulated([self._trial(name, setting, *more) for (name, _, *more), setting in tried], show)
        gpus = len(self.groups[0]) if self.groups else len(self.order) or max(1, len(self.topology.ids("gpu")))
        best: dict[tuple[str, str, int, int], tuple[dict[str, Any], str]] = {}
        for (case, setting), result in zip(tried, results, strict=True):
            if case not in best or result.get("seconds", math.inf) < best[case][0].get("seconds", math.inf):
                best[case] = result, setting
        if self.trace:
            name, _, nodes, size = wanted[-1]
            trial = self._trial(name, best[wanted[-1]][1], nodes, size)
            self.last_trace = self._simulated([trial], show, trace=True)[0].get("trace") or {}
        cases = []
        for (algorithm, direct, nodes, size), (result, setting) in best.items():
            ranks = self.ranks or nodes * gpus
            if "unavailable" in result:
                cases.append(Case(algorithm, direct, nodes, ranks, size, 0.0, unavailable=str(result["unavailable"])))
                continue
            seconds, messages = float(result["seconds"]), int(result["messages"])
            rounds, rounds_run = int(result["rounds"]), int(result["rounds_run"])
            chosen = result.get("chosen")
            counts = (messages, rounds, rounds_run)
            cases.append(Case(algorithm, direct, nodes, ranks, size, seconds, *counts, chosen=chosen, setting=setting))
        return cases

    def _simulated(self, trials: list[dict[str, Any]], show: Show, trace: bool = False) -> list[dict[str, Any]]:
        """The core's results, in the order of the trials; with `trace` the timeline of the last one."""
        costs = costs_json(self.cluster.costs, self.topology.name)
        request = json.dumps({"trials": trials, "trace": trace})
        others = [(one, costs_json(self.cluster.costs, one.name)) for one in self.machines]
        answer = json.loads(_core.simulate_collectives(self.topology, costs, request, Watch(show).progress, others))
        self.assumed = added(self.assumed, answer)
        found: list[dict[str, Any]] = answer["results"]
        return found

    def _trial(self, algorithm: str, direct: str, nodes: int, size: int) -> dict[str, Any]:
        return {
            "cluster": self.cluster.network_of(nodes, self.placement),
            "operation": self.operation,
            "algorithm": algorithm,
            "ranks": self.ranks,
            "bytes": size,
            "direct": direct,
            "pxn": self.pxn,
            "job_bytes": self.cluster.job_bytes,
            "endless_job": self.cluster.endless_job,
            "order": [f"gpu{gpu}" for gpu in self.order],
            "groups": [[f"gpu{gpu}" for gpu in group] for group in self.groups],
            "protocol": self.protocol,
            **({"beside": self.beside} if self.beside else {}),
        }


def fastest_of(cases: Sequence[Case]) -> dict[tuple[int, int], str]:
    """Number of ranks and size -> the fastest algorithm; of equally fast ones the first."""
    best: dict[tuple[int, int], Case] = {}
    for case in cases:
        found = best.get((case.ranks, case.size))
        if not case.unavailable and (found is None or case.seconds < found.seconds):
            best[case.ranks, case.size] = case
    return {place: case.label() for place, case in best.items()}
