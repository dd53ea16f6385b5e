"""Two training jobs that share the network of a cluster for as long as both train.

While both communicate, a collective of one takes as many times as long as it does beside that of the other, which runs
again and again: a simulation of both on their own nodes, for each pair of collectives. Both jobs begin at once and go
on step after step; a job's time is the mean of its steps but the first.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from waywiser import _core
from waywiser.errors import InputError
from waywiser.simulator.assumptions import Assumption, added
from waywiser.simulator.costs import costs_json
from waywiser.simulator.step import Call, Step, Timed
from waywiser.simulator.step_timeline import ALONE, COMPUTE, WIRE, Beside, Span, Task, Tasks

_LEAST_STEPS, _MOST_EVENTS = 9, 2_000_000
_MOST_GROUPS, _MOST_TASKS = 16, 50_000
_DRAWN_STEPS = 2

# How many times as long the first collective takes beside the second one.
Slower = Mapping[tuple[str, str], float]


class Shared(NamedTuple):
    """One job beside the other; seconds. `spans` are those of its first steps."""

    alone: float
    mean: float
    longest: float
    steps: int
    spans: tuple[Span, ...]


@dataclass(frozen=True)
class Meeting:
    """A collective of a job beside one of the other job."""

    job: int
    call: str
    beside: str
    times: float  # as long as alone


@dataclass
class Jobs:
    """Two jobs, on nodes of their own of one cluster."""

    steps: tuple[Step, Step]
    assumed: list[Assumption] = field(default_factory=list)
    meetings: list[Meeting] = field(default_factory=list)

    def run(self, timed: tuple[Timed, Timed]) -> tuple[Shared, Shared]:
        """`timed`: each alone. Raises InputError: too much to run."""
        slower: list[dict[tuple[str, str], float]] = [{}, {}]
        for own, other in ((0, 1), (1, 0)):
            for call in timed[own].calls:
                for beside in timed[other].calls:
                    times = self._beside(own, call, beside)
                    slower[own][call.name, beside.name] = times
                    self.meetings.append(Meeting(own + 1, call.name, beside.name, times))
        lanes = [JobLanes(tasks_of(step, one), one.beside) for step, one in zip(self.steps, timed, strict=True)]
        run_together(lanes, slower)
        first, second = (job.shared(one.total) for job, one in zip(lanes, timed, strict=True))
        return first, second

    def _beside(self, own: int, call: Call, beside: Call) -> float:
        step, other = self.steps[own], self.steps[1 - own]
        (groups, case), (far_groups, far) = step.asked[call.name], other.asked[beside.name]
        if groups.nodes == 1 or far_groups.nodes == 1:
            return 1.0
        places = [*step.places(groups), *other.places(far_groups)]
        trial = {
            **_trial(call, groups.of_node, case),
            "cluster": {**step.cluster.network, "places": places},
            "beside": {**_trial(beside, far_groups.of_node, far), "nodes": far_groups.nodes},
        }
        costs = costs_json(step.cluster.costs, step.topology.name)
        answer = json.loads(_core.simulate_collectives(step.topology, costs, json.dumps({"trials": [trial]})))
        self.assumed = added(self.assumed, answer)
        return float(answer["results"][0]["seconds"]) / case.seconds


def _trial(call: Call, groups: list[list[int]], case: Any) -> dict[str, Any]:
    """The collective as it ran alone."""
    chosen = case.chosen or {"algorithm": case.algorithm, "protocol": "Simple"}
    return {
        "operation": call.operation, "algorithm": chosen["algorithm"], "protocol": chosen["protocol"],
        "bytes": call.size, "direct": case.setting, "pxn": call.operation == "all_to_all",
        "groups": [[f"gpu{gpu}" for gpu in group] for group in groups],
    }  # fmt: skip


def tasks_of(step: Step, timed: Timed) -> Tasks:
    """A whole step of a GPU: alone it takes as long as `timed` says.

    Micro-batches are put together to at most 16 groups and the last one, whose gradients go while its backward pass
    runs. Raises InputError: too many micro-batches."""
    all_compute: list[Task] = []
    all_wire: list[Task] = []

    def then(compute: Sequence[Task], wire: Sequence[Task]) -> None:
        computed, sent = len(all_compute), len(all_wire)
        for lane, new in ((all_compute, compute), (all_wire, wire)):
            lane.extend([one._replace(compute=one.compute + computed, wire=one.wire + sent) for one in new])

    if step.layout.shard and timed.tasks.compute:
        for _ in range(timed.micro_batches):
            then(timed.tasks.compute, timed.tasks.wire)
            if len(all_wire) > _MOST_TASKS:
                raise InputError(f"second_job: {timed.micro_batches} micro-batches are too many: write a larger micro=")
    else:
        _passes(step, timed, then)
    for name, seconds in (("bubble", timed.bubble), ("optimizer", timed.work.optimizer)):
        if seconds:
            then([Task(name, seconds)], [])
    return Tasks(all_compute, all_wire)


def _passes(step: Step, timed: Timed, then: Callable[[Sequence[Task], Sequence[Task]], None]) -> None:
    """Of all micro-batches; the last one has its own, whose backward pass is said with what it sends within layers."""
    count, last = timed.micro_batches, 1 if timed.tasks.compute else 0
    within = [call for call in timed.calls if call.name not in ("gradients", "gradients of experts")]
    groups = min(_MOST_GROUPS, count - last)
    for _ in range(groups):
        share = (count - last) / count / groups
        then([Task("forward", timed.work.forward * share), Task("backward", timed.work.backward * share)], [])
        for call in within:
            then([], [Task(call.name, call.seconds * call.times * share)])
    if last:
        then([Task("forward", timed.work.forward / count)], [])
        for call in within:
            part = 1.0 if call.name == "stages" else step.model.forward_share
            then([], [Task(call.name, call.seconds * call.times / count * part)])
        then(timed.tasks.compute, timed.tasks.wire)


class _Lane:
    def __init__(self, name: str, tasks: Sequence[Task]) -> None:
        self.name, self.tasks = name, tasks
        self.done, self.begun, self.left = 0, -1.0, 0.0

    @property
    def over(self) -> bool:
        return self.done == len(self.tasks)

    @property
    def running(self) -> Task | None:
        return self.tasks[self.done] if self.begun >= 0 else None


class JobLanes:
    """Its lanes, step after step."""

    def __init__(self, tasks: Tasks, beside: Beside = ALONE) -> None:
        self.compute, self.wire = _Lane(COMPUTE, tasks.compute), _Lane(WIRE, tasks.wire)
        self.beside = beside
        self.ends: list[float] = []
        self.spans: list[Span] = []

    def begin(self, now: float) -> None:
        """What can begin; the next step, once all of one is over."""
        if self.compute.over and self.wire.over:
            self.ends.append(now)
            self.compute.done = self.wire.done = 0
        for lane in (self.compute, self.wire):
            if lane.begun < 0 and not lane.over:
                task = lane.tasks[lane.done]
                if task.compute <= self.compute.done and task.wire <= self.wire.done:
                    lane.begun, lane.left = now, task.seconds

    def finish(self, lane: _Lane, now: float) -> None:
        if len(self.ends) < _DRAWN_STEPS:
            self.spans.append(Span(lane.name, lane.tasks[lane.done].name, lane.begun, now))
        lane.done, lane.begun = lane.done + 1, -1.0

    def shared(self, alone: float) -> Shared:
        took = [end - begin for begin, end in zip(self.ends, self.ends[1:], strict=False)]
        return Shared(alone, sum(took) / len(took), max(took), len(took), tuple(self.spans))


def run_together(jobs: Sequence[JobLanes], slower: Sequence[Slower]) -> None:
    """Until each has done some steps. `slower`: of a job's collective, beside one of the other job."""
    now, events = 0.0, 0
    while min(len(job.ends) for job in jobs) < _LEAST_STEPS:
        for job in jobs:
            job.begin(now)
        running: list[tuple[float, JobLanes, _Lane, float]] = []
        for number, job in enumerate(jobs):
            wire = job.wire.running
            both = wire and job.compute.running and min(job.wire.left, job.compute.left) > 0
            slower_compute, slower_wire = job.beside if both else ALONE
            if job.compute.running:
                rate = 1 / slower_compute
                running.append((job.compute.left / rate, job, job.compute, rate))
            if wire:
                others = [one.wire.running for place, one in enumerate(jobs) if place != number]
                rate = 1 / slower_wire
                for other in others:
                    rate /= slower[number][wire.name, other.name] if other else 1.0
                running.append((job.wire.left / rate, job, job.wire, rate))
        if not running:
            raise ValueError("tasks wait for each other")
        step, first, its_lane, _ = min(running, key=lambda one: one[0])
        for _, _, lane, rate in running:
            lane.left = 0.0 if lane is its_lane else max(0.0, lane.left - step * rate)
        now += step
        first.finish(its_lane, now)
        events += 1
        if events > _MOST_EVENTS:
            raise InputError("second_job: a step of one job is too many steps of the other to run both")


def jobs_json(jobs: Jobs, shared: Sequence[Shared], rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """`rows`: each job alone, as JSON."""
    both = [
        {**row, "alone_seconds": one.alone, "seconds": one.mean, "longest_seconds": one.longest, "steps": one.steps}
        for row, one in zip(rows, shared, strict=True)
    ]
    meetings = [vars(one) for one in jobs.meetings]
    return {"simulated": True, "jobs": both, "meetings": meetings, "assumed": jobs.assumed}
