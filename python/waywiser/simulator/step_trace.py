"""A training step in Chrome's trace event format, which Perfetto reads: for each stage of the pipeline what its GPUs
compute and what they send, as the times of `step` have it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from waywiser.errors import InputError
from waywiser.simulator.step import Step, Timed
from waywiser.simulator.step_jobs import Jobs, Shared
from waywiser.simulator.step_timeline import COMPUTE, WIRE, Span, end_of, turns_of

_MOST_SPANS = 200_000
_MICRO = 1e6

Row = tuple[int, Span]  # the stage, and when something ran there


def trace_of(step: Step, timed: Timed) -> dict[str, Any]:
    """Raises InputError: too many micro-batches to draw."""
    layout = step.layout
    if (
        timed.micro_batches * (step.model.layers if layout.shard else layout.pipeline * layout.interleave) * 6
        > _MOST_SPANS
    ):
        raise InputError(f"--trace: {timed.micro_batches} micro-batches are too many to draw: write a larger micro=")
    rows = list(_sharded(timed) if layout.shard and timed.last else _piped(step, timed))
    ends = [end_of([span for stage, span in rows if stage == number]) for number in range(layout.pipeline)]
    if timed.work.optimizer:
        rows += [(stage, Span(COMPUTE, "optimizer", end, end + timed.work.optimizer)) for stage, end in enumerate(ends)]
    names = {
        (stage, lane): 2 * stage + number
        for stage in range(layout.pipeline)
        for number, lane in enumerate((COMPUTE, WIRE))
    }
    events: list[dict[str, Any]] = [
        {"ph": "M", "pid": 0, "tid": row, "name": "thread_name", "args": {"name": f"stage {stage}: {lane}"}}
        for (stage, lane), row in names.items()
    ]
    for stage, span in sorted(rows, key=lambda one: (one[0], one[1].begin, one[1].lane)):
        times = {"ts": span.begin * _MICRO, "dur": (span.end - span.begin) * _MICRO}
        events.append({"ph": "X", "pid": 0, "tid": names[stage, span.lane], "name": span.name, **times})
    title = f"a training step on {step.cluster.nodes} x {step.topology.name}"
    return {"displayTimeUnit": "ms", "otherData": {"title": title, "simulated": True}, "traceEvents": events}


def trace_of_jobs(jobs: Jobs, shared: Sequence[Shared]) -> dict[str, Any]:
    """The first steps of both jobs beside each other."""
    rows = [(number, lane) for number in range(len(shared)) for lane in (COMPUTE, WIRE)]
    events: list[dict[str, Any]] = [
        {"ph": "M", "pid": 0, "tid": row, "name": "thread_name", "args": {"name": f"job {job + 1}: {lane}"}}
        for row, (job, lane) in enumerate(rows)
    ]
    until = max(end_of(one.spans) for one in shared)
    for job, one in enumerate(shared):
        for span in one.spans:
            if span.begin <= until and span.end > span.begin:
                times = {"ts": span.begin * _MICRO, "dur": (span.end - span.begin) * _MICRO}
                row = rows.index((job, span.lane))
                events.append({"ph": "X", "pid": 0, "tid": row, "name": span.name, **times})
    sizes = " and ".join(f"{step.cluster.nodes}" for step in jobs.steps)
    title = f"two jobs on {sizes} x {jobs.steps[0].topology.name}"
    return {"displayTimeUnit": "ms", "otherData": {"title": title, "simulated": True}, "traceEvents": events}


def _moved(spans: tuple[Span, ...], by: float, stage: int = 0) -> Iterator[Row]:
    """Computation without a break under one name is one span."""
    held: Span | None = None
    for span in sorted(spans, key=lambda one: (one.lane, one.begin)):
        if held and (held.lane, held.name, held.end) == (span.lane, span.name, span.begin) and span.lane == COMPUTE:
            held = held._replace(end=span.end)
            continue
        if held:
            yield stage, held._replace(begin=held.begin + by, end=held.end + by)
        held = span
    if held:
        yield stage, held._replace(begin=held.begin + by, end=held.end + by)


def _sharded(timed: Timed) -> Iterator[Row]:
    took = end_of(timed.last)
    for number in range(timed.micro_batches):
        yield from _moved(timed.last, number * took)


def _piped(step: Step, timed: Timed) -> Iterator[Row]:
    layout, work, share = step.layout, timed.work, step.model.forward_share
    parts = timed.micro_batches * layout.interleave
    within = {"tensor": timed.tensor, "sequence": timed.sequence, "experts": timed.expert}
    passes = {}
    for name, seconds, part in (("forward", work.forward, share), ("backward", work.backward, 1 - share)):
        sent = {one: took * part for one, took in within.items()} | {"stages": timed.stages / 2}
        passes[name] = [(COMPUTE, name, seconds / parts)] + [
            (WIRE, one, took / parts) for one, took in sent.items() if took
        ]
    length = {name: sum(took for *_, took in some) for name, some in passes.items()}
    turns = turns_of(layout.pipeline, timed.micro_batches, layout.interleave, length["forward"], length["backward"])
    last: dict[int, float] = {}
    for turn, begin in turns.items():
        last[turn.stage] = max(last.get(turn.stage, 0.0), begin) if turn.backward else last.get(turn.stage, 0.0)
    for turn, begin in turns.items():
        name = "backward" if turn.backward else "forward"
        if (
            turn.backward
            and begin == last[turn.stage]
            and timed.last
            and layout.interleave == 1
            and len(passes[name]) == 1
        ):
            yield from _moved(timed.last, begin, turn.stage)
            continue
        for lane, what, took in passes[name]:
            yield turn.stage, Span(lane, f"{what} {turn.micro}", begin, begin + took)
            begin += took
    # Gradients beside the other spans of the last micro-batch, which end with its backward pass.
    if timed.last and (layout.interleave > 1 or len(passes["backward"]) > 1):
        gradients = tuple(span for span in timed.last if span.lane == WIRE)
        backward = (work.backward + sum(within.values()) * (1 - share)) / timed.micro_batches
        for stage, begin in last.items():
            yield from _moved(gradients, begin + length["backward"] - backward, stage)
