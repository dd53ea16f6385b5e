"""A training step on a simulated cluster: the time of its parts, its collectives, what a change would give."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

from waywiser.errors import UnavailableError
from waywiser.simulator.assumptions import Assumption, added
from waywiser.simulator.cluster import Cluster
from waywiser.simulator.collectives import NCCL, Case, Collective
from waywiser.simulator.costs import costs_json
from waywiser.simulator.step_contention import Costs, beside, costs_of, memory_rate
from waywiser.simulator.step_groups import (
    Groups,
    data_groups,
    expert_groups,
    same_expert_groups,
    sequence_groups,
    stage_groups,
    tensor_groups,
)
from waywiser.simulator.step_speed import NO_WORK, Speed, Work, work_of
from waywiser.simulator.step_timeline import (
    ALONE,
    NO_TASKS,
    Beside,
    Layer,
    Span,
    Tasks,
    bucketed,
    end_of,
    pipelined,
    sharded,
    two_lanes,
)
from waywiser.simulator.traced import BACKWARD, FORWARD, Kernels
from waywiser.simulator.training import BYTES_OF_STATE, Layout, Model
from waywiser.stages import Show


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
    """Seconds of a step. `compute`, `tensor`, `sequence`, `expert`, `bubble`, `stages` and `data` sum up to `total`;
    all but `compute` and `bubble` are what communication adds to it."""

    compute: float
    tensor: float
    stages: float
    bubble: float
    data: float
    calls: tuple[Call, ...]
    sequence: float = 0.0
    expert: float = 0.0
    work: Work = NO_WORK
    micro_batches: int = 1
    last: tuple[Span, ...] = ()  # of the last backward pass with its gradients; sharded: of each micro-batch
    tasks: Tasks = NO_TASKS  # that `last` shows
    beside: Beside = ALONE  # of computation and what data parallelism sends

    @property
    def exposed(self) -> float:
        return self.tensor + self.sequence + self.expert + self.stages + self.data

    @property
    def total(self) -> float:
        return self.compute + self.exposed + self.bubble


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
    asked: dict[str, tuple[Groups, Case]] = field(default_factory=dict)  # of each collective, by its name

    def run(self, show: Show) -> Timed:
        """By the formulas of `training`."""
        model, layout = self.model, self.layout
        work = work_of(model, layout, self.speed)
        micro_batches = model.batch // (layout.data * layout.micro)
        within = {
            "tensor": self._tensor(micro_batches, show),
            "sequence": self._sequence(micro_batches, show),
            "expert": self._expert(micro_batches, show),
        }
        took = {name: sum(call.seconds * call.times for call in calls) for name, calls in within.items()}
        exchange = self._stages(micro_batches, show)
        wait = exchange.seconds * exchange.times if exchange else 0.0
        each = sum(took.values())
        slot = (work.forward + work.backward + each + wait) / micro_batches
        bubble = pipelined(layout.pipeline, micro_batches, slot, layout.interleave) - micro_batches * slot
        # Of a micro-batch in one stage. What a forward pass sends within a layer, the backward pass sends, too.
        share = (1 - model.forward_share) * each
        passes = ((work.forward + each - share) / micro_batches, (work.backward + share) / micro_batches)
        data, tasks, slower, calls = self._data(micro_batches, *passes, show)
        spans = two_lanes(*tasks, slower)
        found = [call for some in within.values() for call in some] + ([exchange] if exchange else []) + calls
        return Timed(
            work.total, took["tensor"], wait, bubble, data, tuple(found), took["sequence"], took["expert"],
            work, micro_batches, tuple(spans), tasks, slower,
        )  # fmt: skip

    def state_bytes(self) -> int:
        """Of a GPU: parameters, gradients, Adam's states; without activations."""
        layout = self.layout
        parts = layout.tensor * layout.pipeline * (layout.replicas if layout.shard else 1)
        shared = self.model.parameters - self.model.of_experts
        return BYTES_OF_STATE * (shared + self.model.of_experts // layout.expert) // parts

    def _gpus(self) -> int:
        return len(self.topology.ids("gpu"))

    def _call(self, name: str, operation: str, groups: Groups, size: int, times: int, show: Show) -> Call:
        cluster = self._cluster_of(groups)
        told = (cluster.network_of(groups.nodes), cluster.costs, operation, groups, size, self.direct)
        key = repr((self.topology.fingerprint, *told))
        if key not in self.known:
            # NCCL has no all-to-all of its own: programs send to all and receive from all at once.
            way = NCCL if operation != "all_to_all" else "direct"
            run = Collective(self.topology, cluster, operation, [size], [way], direct=(self.direct,))
            run.groups, run.pxn = groups.of_node, way != NCCL
            (self.known[key],) = run.run(show)
            self.assumed = added(self.assumed, {"assumed": run.assumed})
        case = self.known[key]
        if case.unavailable:
            raise UnavailableError(f"{name}: {case.unavailable}")
        self.asked[name] = (groups, case)
        return Call(name, operation, case.ranks, size, times, case.seconds, chosen_words(case))

    def _cluster_of(self, groups: Groups) -> Cluster:
        """Of the nodes of the first group: neighbours, unless the cluster says where they are."""
        if not self.cluster.placed:
            return replace(self.cluster, network={**self.cluster.network, "nodes": groups.nodes}, second=None)
        return replace(self.cluster, places=self.places(groups), job=groups.nodes, second=None)

    def places(self, groups: Groups) -> tuple[int, ...]:
        """Of the nodes of the first group."""
        every = self.cluster.places_in(self.cluster.nodes)
        return tuple(every[number] for number in groups.numbers)

    def _activations(self) -> int:
        """Bytes of one micro-batch between two layers, on a GPU."""
        model, layout = self.model, self.layout
        return layout.micro * model.sequence // layout.sequence * model.hidden * model.element

    def _in_layers(self, micro_batches: int) -> int:
        """How often a GPU does what each layer does once in each direction; a forward pass that is repeated, too."""
        return (3 if self.model.recompute else 2) * self.model.layers // self.layout.pipeline * micro_batches

    def _tensor(self, micro_batches: int, show: Show) -> list[Call]:
        if self.layout.tensor == 1:
            return []
        groups, times = tensor_groups(self.layout, self._gpus()), 2 * self._in_layers(micro_batches)
        return [self._call("tensor", "all_reduce", groups, self._activations(), times, show)]

    def _sequence(self, micro_batches: int, show: Show) -> list[Call]:
        if self.layout.sequence == 1:
            return []
        groups, times = sequence_groups(self.layout, self._gpus()), self._in_layers(micro_batches)
        own = self._activations() // self.layout.tensor
        return [
            self._call("queries, keys, values", "all_to_all", groups, 3 * own, times, show),
            self._call("attention", "all_to_all", groups, own, times, show),
        ]

    def _expert(self, micro_batches: int, show: Show) -> list[Call]:
        """To the experts and back: each GPU sends `chosen` copies of its tokens."""
        if self.layout.expert == 1:
            return []
        groups, times = expert_groups(self.layout, self._gpus()), 2 * self._in_layers(micro_batches)
        size = self.model.chosen * self._activations() // self.layout.tensor
        return [self._call("experts", "all_to_all", groups, size, times, show)]

    def _stages(self, micro_batches: int, show: Show) -> Call | None:
        """One GPU sends activations, the other one gradients: an all-gather of two ranks, as both meet on the wire."""
        layout = self.layout
        if layout.pipeline == 1:
            return None
        size, times = self._activations() // layout.tensor, 2 * micro_batches * layout.interleave
        return self._call("stages", "all_gather", stage_groups(layout, self._gpus()), 2 * size, times, show)

    def _data(
        self, micro_batches: int, forward: float, backward: float, show: Show
    ) -> tuple[float, Tasks, Beside, list[Call]]:
        """What data parallelism adds to all micro-batches, in seconds; the tasks of one; how they slow each other."""
        model, layout = self.model, self.layout
        if layout.replicas == 1:
            return 0.0, NO_TASKS, ALONE, []
        groups = data_groups(layout, self._gpus())
        parts = layout.tensor * layout.pipeline
        own = (model.parameters - (model.of_experts if layout.expert > 1 else 0)) // parts
        if layout.shard:
            size, times = own // model.layers, model.layers * micro_batches
            gather = self._call("parameters", "all_gather", groups, size * model.element, 2 * times, show)
            scatter = self._call("gradients", "reduce_scatter", groups, size * model.gradient, times, show)
            layer = Layer(forward / model.layers, backward / model.layers, gather.seconds, scatter.seconds)
            tasks = sharded(model.layers, layer, layout.overlap)
            slower = self._beside(groups)
            end = end_of(two_lanes(*tasks, slower))
            return (end - forward - backward) * micro_batches, tasks, slower, [gather, scatter]
        calls, slowed_in = [self._gradients("gradients", groups, own * model.gradient, show)], groups
        if layout.expert > 1 and layout.replicas > layout.expert:
            of_experts = model.of_experts // layout.expert // parts * model.gradient
            groups = same_expert_groups(layout, self._gpus())
            calls.append(self._gradients("gradients of experts", groups, of_experts, show))
        buckets = [call.seconds for call in calls for _ in range(call.times)]
        names = [call.name for call in calls for _ in range(call.times)]
        divided = self._divided(sum(call.size * call.times for call in calls))
        tasks = bucketed(backward + divided, buckets, layout.overlap, names)
        slower = self._beside(slowed_in, divided)
        return end_of(two_lanes(*tasks, slower)) - backward, tasks, slower, calls

    def _divided(self, size: int) -> float:
        """Seconds in which DDP divides gradients by the number of replicas, which no trace of one GPU has: it loads and
        stores each once (PyTorch, torch/csrc/distributed/c10d/reducer.cpp, mark_variable_ready_dense)."""
        rate = memory_rate(self.topology, self._costs) if self.speed.traced else 0.0
        return 2 * size / rate if rate else 0.0

    def _beside(self, groups: Groups, divided: float = 0.0) -> Beside:
        """Of the passes of a trace and what data parallelism sends meanwhile; `divided`: seconds, in a backward
        pass."""
        traced = self.speed.traced
        if self.speed.slowdown is not None or traced is None:
            return Beside(self.speed.slowdown or 1.0)
        kernels = traced.kernels[BACKWARD]
        if self.layout.shard:
            kernels = kernels.plus(traced.kernels[FORWARD])
        share = work_of(self.model, self.layout, self.speed).backward / traced.backward
        return beside(kernels.plus(Kernels(0.0, divided / share)), self._costs, groups.nodes == 1)

    @cached_property
    def _costs(self) -> Costs:
        return costs_of(self.topology, costs_json(self.cluster.costs, self.topology.name))

    def _gradients(self, name: str, groups: Groups, size: int, show: Show) -> Call:
        count = max(1, -(-size // self.layout.bucket))
        return self._call(name, "all_reduce", groups, -(-size // count), count, show)


def chosen_words(case: Case) -> str:
    """ "ring by LL128"."""
    if case.chosen is None:
        return case.algorithm
    algorithm = str(case.chosen["algorithm"]).removeprefix("nccl_")
    return f"{algorithm} by {case.chosen['protocol']}" if algorithm in ("ring", "tree") else algorithm
