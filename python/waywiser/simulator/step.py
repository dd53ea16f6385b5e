"""A training step on a simulated cluster: the time of its parts, its collectives, what a change would give."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from waywiser import _core
from waywiser.errors import UnavailableError
from waywiser.simulator.assumptions import Assumption, added
from waywiser.simulator.cluster import Cluster
from waywiser.simulator.collectives import NCCL, Case, Collective
from waywiser.simulator.step_timeline import bucketed, pipelined, sharded
from waywiser.simulator.training import BYTES_OF_STATE, Layout, Model, Speed
from waywiser.stages import Show

SCHEMA, VERSION = "waywiser.step", 1


class Call(NamedTuple):
    """One collective of a step: `times` of them by each GPU, over groups of `ranks`."""

    name: str
    operation: str
    ranks: int
    size: int
    times: int
    seconds: float  # of one
    by: str  # the algorithm and protocol of NCCL

    def as_json(self) -> dict[str, Any]:
        return self._asdict()


@dataclass(frozen=True)
class Timed:
    """Seconds of a step. `compute`, `tensor`, `bubble`, `stages` and `data` sum up to `total`; the last two and
    `tensor` are communication that nothing hides."""

    compute: float
    tensor: float
    stages: float
    bubble: float
    data: float
    calls: tuple[Call, ...]

    @property
    def exposed(self) -> float:
        return self.tensor + self.stages + self.data

    @property
    def total(self) -> float:
        return self.compute + self.exposed + self.bubble


class _Groups(NamedTuple):
    """GPUs of a node whose groups, each with the same GPUs of other nodes, communicate at once."""

    nodes: int
    of_node: list[list[int]]


def tensor_groups(layout: Layout, gpus: int) -> _Groups:
    size = layout.tensor
    return _Groups(1, [list(range(first, first + size)) for first in range(0, gpus, size)])


def data_groups(layout: Layout, gpus: int) -> _Groups:
    """Over the nodes of a stage, or within a node of several stages."""
    size, step = layout.tensor * layout.data, layout.tensor
    inside, nodes = min(size, gpus), max(1, size // gpus)
    groups = [range(one + part, one + inside, step) for one in range(0, gpus, inside) for part in range(step)]
    return _Groups(nodes, [list(group) for group in groups])


def stage_groups(layout: Layout, gpus: int) -> _Groups:
    """Pairs of GPUs of two stages."""
    size = layout.tensor * layout.data
    if size >= gpus:
        return _Groups(2, [[gpu] for gpu in range(gpus)])
    return _Groups(1, [[gpu, gpu + size] for gpu in range(size)])


@dataclass
class Step:
    """A step on all GPUs of a cluster."""

    topology: Any
    cluster: Cluster
    model: Model
    layout: Layout
    speed: Speed
    direct: str = "best"
    assumed: list[Assumption] = field(default_factory=list)
    known: dict[str, Case] = field(default_factory=dict)  # what was simulated, also for steps with other settings

    def run(self, show: Show) -> Timed:
        """By the formulas of `training`."""
        model, layout = self.model, self.layout
        compute = model.operations / (layout.gpus * self.speed.reached)
        micro_batches = model.batch // (layout.data * layout.micro)
        once = compute / micro_batches  # of a micro-batch in one stage, forward and backward
        tensor = self._tensor(micro_batches, show)
        exchange = self._stages(micro_batches, show)
        each = tensor.seconds * tensor.times / micro_batches if tensor else 0.0
        wait = exchange.seconds * exchange.times / micro_batches if exchange else 0.0
        slot = once + each + wait
        bubble = pipelined(layout.pipeline, micro_batches, slot) - micro_batches * slot
        backward = (once + each) * (1 - model.forward_share)
        data, calls = self._data(micro_batches, once + each, backward, show)
        found = tuple(call for call in (tensor, exchange, *calls) if call)
        return Timed(compute, each * micro_batches, wait * micro_batches, bubble, data, found)

    def state_bytes(self) -> int:
        """Of a GPU: parameters, gradients, Adam's states; without activations."""
        layout = self.layout
        parts = layout.tensor * layout.pipeline * (layout.data if layout.shard else 1)
        return BYTES_OF_STATE * self.model.parameters // parts

    def _gpus(self) -> int:
        return len(self.topology.ids("gpu"))

    def _call(self, name: str, operation: str, groups: _Groups, size: int, times: int, show: Show) -> Call:
        cluster = replace(self.cluster, network={**self.cluster.network, "nodes": groups.nodes})
        key = repr((self.topology.fingerprint, cluster.network, cluster.costs, operation, groups, size, self.direct))
        if key not in self.known:
            run = Collective(self.topology, cluster, operation, [size], [NCCL], direct=(self.direct,))
            run.groups = groups.of_node
            (self.known[key],) = run.run(show)
            self.assumed = added(self.assumed, {"assumed": run.assumed})
        case = self.known[key]
        if case.unavailable:
            raise UnavailableError(f"{name}: {case.unavailable}")
        return Call(name, operation, case.ranks, size, times, case.seconds, chosen_words(case))

    def _tensor(self, micro_batches: int, show: Show) -> Call | None:
        model, layout = self.model, self.layout
        if layout.tensor == 1:
            return None
        size = layout.micro * model.sequence * model.hidden * model.element
        passes = 3 if model.recompute else 2
        times = 2 * passes * model.layers // layout.pipeline * micro_batches
        return self._call("tensor", "all_reduce", tensor_groups(layout, self._gpus()), size, times, show)

    def _stages(self, micro_batches: int, show: Show) -> Call | None:
        """One GPU sends activations, the other one gradients: an all-gather of two ranks, as both meet on the wire."""
        model, layout = self.model, self.layout
        if layout.pipeline == 1:
            return None
        size = layout.micro * model.sequence * model.hidden * model.element // layout.tensor
        groups = stage_groups(layout, self._gpus())
        return self._call("stages", "all_gather", groups, 2 * size, 2 * micro_batches, show)

    def _data(self, micro_batches: int, once: float, backward: float, show: Show) -> tuple[float, list[Call]]:
        """What data parallelism adds to the computation of all micro-batches, in seconds."""
        model, layout = self.model, self.layout
        if layout.data == 1:
            return 0.0, []
        groups = data_groups(layout, self._gpus())
        own = model.parameters // (layout.tensor * layout.pipeline) * model.element
        if not layout.shard:
            count = max(1, -(-own // layout.bucket))
            call = self._call("gradients", "all_reduce", groups, -(-own // count), count, show)
            return bucketed(backward, [call.seconds] * count, layout.overlap), [call]
        size = own // model.layers
        gather = self._call("parameters", "all_gather", groups, size, 2 * model.layers * micro_batches, show)
        scatter = self._call("gradients", "reduce_scatter", groups, size, model.layers * micro_batches, show)
        layer = once / model.layers
        passes = (layer * model.forward_share, layer * (1 - model.forward_share))
        took = sharded(model.layers, *passes, gather.seconds, scatter.seconds, layout.overlap)
        return (took - once) * micro_batches, [gather, scatter]


def chosen_words(case: Case) -> str:
    """ "ring by LL128"."""
    if case.chosen is None:
        return case.algorithm
    algorithm = str(case.chosen["algorithm"]).removeprefix("nccl_")
    return f"{algorithm} by {case.chosen['protocol']}" if algorithm in ("ring", "tree") else algorithm


class Change(NamedTuple):
    """A change, and the time of a step with it."""

    name: str
    timed: Timed


def changes(step: Step, show: Show) -> list[Change]:
    """What ports or NVLinks of twice the rate, other buckets and no overlap would give."""
    found: list[tuple[str, Step]] = []
    layout = step.layout
    if step.cluster.nodes > 1:
        cluster = _faster_ports(step)
        limit = " (PCIe is the limit)" if cluster.port_note(step.topology) else ""
        found.append((f"ports of twice the rate{limit}", replace(step, cluster=cluster)))
    if any(link.kind == "nvlink" for link in step.topology.links):
        found.append(("twice as many NVLinks", replace(step, topology=_more_nvlinks(step.topology))))
    if layout.data > 1 and not layout.shard:
        found.append(("buckets 4 times as large", replace(step, layout=replace(layout, bucket=4 * layout.bucket))))
        small = max(1, layout.bucket // 4)
        found.append(("buckets a quarter as large", replace(step, layout=replace(layout, bucket=small))))
    if layout.data > 1:
        other = "without overlap" if layout.overlap else "with overlap"
        found.append((other, replace(step, layout=replace(layout, overlap=not layout.overlap))))
    return [Change(name, one.run(show)) for name, one in found]


def _faster_ports(step: Step) -> Cluster:
    links = [link for link in step.topology.links if link.kind == "network"]
    rate = step.cluster.network.get("port_rate") or max(
        (link.achievable or link.nominal or 0.0 for link in links), default=0.0
    )
    return replace(step.cluster, network={**step.cluster.network, "port_rate": 2 * rate})


def _more_nvlinks(topology: Any) -> Any:
    told = json.loads(topology.to_json())
    for link in told["links"]:
        if link["kind"] == "nvlink":
            link["count"] = 2 * link.get("count", 1)
            for rate in ("nominal", "achievable"):
                if rate in link:
                    link[rate] *= 2
    return _core.Topology.from_json(json.dumps(told), topology.name)


def as_json(step: Step, timed: Timed, others: Sequence[Change]) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "version": VERSION,
        "simulated": True,
        "machine": step.topology.name,
        "nodes": step.cluster.nodes,
        "model": vars(step.model),
        "parallel": vars(step.layout),
        "gpu": vars(step.speed),
        "state_bytes": step.state_bytes(),
        **_seconds(timed),
        "collectives": [call.as_json() for call in timed.calls],
        "changes": [{"change": one.name, **_seconds(one.timed)} for one in others],
        "assumed": step.assumed,
    }


def _seconds(timed: Timed) -> dict[str, Any]:
    return {
        "seconds": timed.total,
        "compute": timed.compute,
        "exposed": timed.exposed,
        "exposed_tensor": timed.tensor,
        "exposed_stages": timed.stages,
        "exposed_data": timed.data,
        "bubble": timed.bubble,
    }
