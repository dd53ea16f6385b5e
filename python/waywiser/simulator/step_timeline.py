"""Computation and communication of a training step in time: what one hides of the other. Values only.

A GPU computes and communicates at once, each one thing after the other. While it does both, each takes some times as
long: see Beside.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

COMPUTE, WIRE = "computation", "communication"


class Beside(NamedTuple):
    """How many times as long computation and communication take while both run; at least 1."""

    compute: float = 1.0
    wire: float = 1.0


ALONE = Beside()


class Task(NamedTuple):
    """So many seconds of work. It waits for the first `compute` and `wire` tasks of both lanes, and its own lane."""

    name: str
    seconds: float
    compute: int = 0
    wire: int = 0


class Span(NamedTuple):
    """When something ran, and on which lane."""

    lane: str
    name: str
    begin: float
    end: float


@dataclass
class _Lane:
    name: str
    tasks: Sequence[Task]
    done: int = 0
    begun: float = -1  # below 0: the next task has not begun
    left: float = 0.0

    def begin(self, now: float, computed: int, sent: int) -> None:
        if self.begun < 0 and self.done < len(self.tasks):
            task = self.tasks[self.done]
            if task.compute <= computed and task.wire <= sent:
                self.begun, self.left = now, task.seconds

    @property
    def runs(self) -> bool:
        return self.begun >= 0

    def end(self, now: float) -> Span:
        span = Span(self.name, self.tasks[self.done].name, self.begun, now)
        self.done, self.begun = self.done + 1, -1
        return span


def two_lanes(compute: Sequence[Task], wire: Sequence[Task], beside: Beside = ALONE) -> list[Span]:
    """When each task ran, in the order of their ends. Raises ValueError: tasks wait for each other."""
    lanes = _Lane(COMPUTE, compute), _Lane(WIRE, wire)
    now, spans = 0.0, []
    while any(lane.done < len(lane.tasks) for lane in lanes):
        for lane in lanes:
            lane.begin(now, lanes[0].done, lanes[1].done)
        both = all(lane.runs and lane.left > 0 for lane in lanes)
        rates = [1 / factor if both else 1.0 for factor in beside]
        running = [(lane, rate) for lane, rate in zip(lanes, rates, strict=True) if lane.runs]
        if not running:
            raise ValueError("tasks wait for each other")
        first, rate = min(running, key=lambda one: one[0].left / one[1])
        step = first.left / rate
        for lane, its_rate in running:
            lane.left = 0.0 if lane is first else max(0.0, lane.left - step * its_rate)
        now += step
        spans.append(first.end(now))
    return spans


def end_of(spans: Sequence[Span]) -> float:
    return max((span.end for span in spans), default=0.0)


class Tasks(NamedTuple):
    """Of both lanes."""

    compute: Sequence[Task]
    wire: Sequence[Task]


NO_TASKS = Tasks((), ())


def bucketed(backward: float, buckets: Sequence[float], overlap: bool, names: Sequence[str] = ()) -> Tasks:
    """A backward pass that makes all gradients at an even rate: bucket i of n is complete at (i + 1) / n of the pass
    and sent then; without `overlap` all wait for its end."""
    count = len(buckets)
    told = zip(names or ["gradients"] * count, buckets, strict=True)
    wire = [Task(name, took, number if overlap else count) for number, (name, took) in enumerate(told, 1)]
    return Tasks([Task("backward", backward / count)] * count, wire)


class Layer(NamedTuple):
    """Seconds of one sharded layer: its passes, gathering its parameters, scattering its gradients."""

    forward: float
    backward: float
    gather: float
    scatter: float


def sharded(layers: int, one: Layer, overlap: bool) -> Tasks:
    """One micro-batch whose layers' parameters are gathered before each pass, and whose gradients are scattered after
    the backward one.

    With `overlap` the parameters of the next layer are gathered while one is computed, and no others before that.
    """
    ahead = 1 if overlap else 0
    compute: list[Task] = []
    wire: list[Task] = []
    for number in range(layers):
        wire.append(Task("parameters", one.gather, max(0, number - ahead)))
        compute.append(Task("forward", one.forward, wire=number + 1))
    # On the wire the parameters of the next layer come before the gradients of the last one.
    gathered = layers
    wire.append(Task("parameters", one.gather, layers if not overlap or layers == 1 else layers - 1))
    gathered += 1
    for back in range(layers):
        compute.append(Task("backward", one.backward, wire=gathered))
        after = Task("gradients", one.scatter, layers + back + 1)
        if back + 1 == layers:
            wire.append(after)
        elif overlap:
            wire += [Task("parameters", one.gather, layers + back, gathered), after]
            gathered = len(wire) - 1
        else:
            wire += [after, Task("parameters", one.gather, layers + back + 1)]
            gathered = len(wire)
    return Tasks(compute, wire)


def pipelined(stages: int, micro_batches: int, slot: float, chunks: int = 1) -> float:
    """Seconds of 1F1B: a slot is a forward and a backward pass of one micro-batch in one stage, whose layers are in
    `chunks` parts: the wait for the first and the last micro-batch is that of a part."""
    return (micro_batches + (stages - 1) / chunks) * slot


class Turn(NamedTuple):
    """One pass of a micro-batch through one chunk of the layers of a stage."""

    stage: int
    micro: int
    chunk: int
    backward: bool


def _turns(stages: int, stage: int, micro_batches: int, chunks: int) -> Iterator[Turn]:
    """The order of a stage in 1F1B; interleaved: of groups of `stages` micro-batches, chunk after chunk (Narayanan et
    al., SC 2021, section 2.2; the warm-up is that of Megatron-LM)."""
    count = micro_batches * chunks

    def turn(number: int, backward: bool) -> Turn:
        if chunks == 1:
            return Turn(stage, number, 0, backward)
        group, inside = divmod(number, stages * chunks)
        chunk, micro = divmod(inside, stages)
        return Turn(stage, group * stages + micro, chunks - 1 - chunk if backward else chunk, backward)

    ahead = stages - stage - 1 if chunks == 1 else 2 * (stages - stage - 1) + (chunks - 1) * stages
    ahead = min(ahead, count)
    yield from (turn(number, False) for number in range(ahead))
    for number in range(count - ahead):
        yield turn(ahead + number, False)
        yield turn(number, True)
    yield from (turn(number, True) for number in range(count - ahead, count))


def turns_of(stages: int, micro_batches: int, chunks: int, forward: float, backward: float) -> dict[Turn, float]:
    """When each pass begins; `forward` and `backward` are of one micro-batch in one chunk of a stage."""
    left = [list(_turns(stages, stage, micro_batches, chunks))[::-1] for stage in range(stages)]
    free = [0.0] * stages
    begun: dict[Turn, float] = {}
    last = chunks - 1

    def needs(turn: Turn) -> Turn | None:
        stage, micro, chunk, back = turn
        if not back:
            if stage:
                return Turn(stage - 1, micro, chunk, False)
            return Turn(stages - 1, micro, chunk - 1, False) if chunk else None
        if stage < stages - 1:
            return Turn(stage + 1, micro, chunk, True)
        return Turn(0, micro, chunk + 1, True) if chunk < last else Turn(stage, micro, chunk, False)

    moved = True
    while moved:
        moved = False
        for stage in range(stages):
            while left[stage]:
                turn = left[stage][-1]
                before = needs(turn)
                if before is not None and before not in begun:
                    break
                ready = 0.0 if before is None else begun[before] + (backward if before.backward else forward)
                begun[turn] = max(free[stage], ready)
                free[stage] = begun[turn] + (backward if turn.backward else forward)
                left[stage].pop()
                moved = True
    return begun
