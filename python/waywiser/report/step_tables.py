"""The output of `waywiser simulate step`, and what NCCL would choose, for the terminal; all labelled as simulated."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from rich.table import Table
from rich.text import Text

from waywiser.report.simulated import LABEL
from waywiser.simulator.collectives import Case
from waywiser.simulator.step import Step, Timed, chosen_words
from waywiser.simulator.step_changes import Change
from waywiser.simulator.step_jobs import Meeting, Shared
from waywiser.simulator.step_timeline import ALONE
from waywiser.simulator.traced import Traced
from waywiser.simulator.training import PLACEMENTS
from waywiser.terminal import add, table
from waywiser.units import format_bytes, format_percent, format_seconds

_MUCH = 0.1  # of a step in which its GPU waits


def tables(step: Step, timed: Timed, others: Sequence[Change]) -> Iterator[Table | Text]:
    yield Text(_asked(step) + _slower(timed))
    yield _parts(timed)
    if timed.calls:
        yield Text()
        yield _collectives(timed)
    if others:
        yield Text()
        yield _changes(timed, others)
    yield Text(_memory(step))


def _asked(step: Step) -> str:
    model, layout, speed = step.model, step.layout, step.speed
    shape = f"{model.parameters:.3g} parameters, {model.layers} layers, hidden {model.hidden}, {model.precision}"
    batch = f"{model.batch} sequences of {model.sequence} tokens, {layout.micro} a micro-batch"
    ways = (
        f"data {layout.data}{', sharded' if layout.shard else ''}, tensor {layout.tensor}, pipeline {layout.pipeline}"
    )
    for name, size in (
        ("parts of a stage", layout.interleave),
        ("sequence", layout.sequence),
        ("expert", layout.expert),
    ):
        ways += f", {name} {size}" if size > 1 else ""
    if layout.placement != PLACEMENTS[0]:
        ways += f", placed {layout.placement}"
    rate = f"each computes {speed.reached / 1e12:.3g} of {speed.peak / 1e12:.4g} TFLOP/s ({speed.source})"
    if traced := speed.traced:
        passes = (traced.forward, traced.backward, traced.optimizer, traced.idle)
        forward, backward, optimizer, idle = (format_seconds(seconds) for seconds in passes)
        rate = (
            f"{traced.sequences} sequences on one GPU: forward {forward}, backward {backward}, optimizer {optimizer}, "
            f"in which it waited {idle}{_much(traced)} ({speed.source}, {traced.steps} steps)"
        )
    return f"{shape}; {batch}; {ways}; {rate}"


def _much(traced: Traced) -> str:
    """A trace whose GPU waits for its host is of a slower host: the profiler works there, too."""
    total = traced.forward + traced.backward + traced.optimizer
    return " for its host, which the profiler slows: no measure of the step" if traced.idle > _MUCH * total else ""


def _slower(timed: Timed) -> str:
    if timed.beside == ALONE:
        return ""
    compute, wire = timed.beside
    sends = f", and communicates {wire:.3g} times as slowly" if wire > 1 else ""
    return f"; while it does both, it computes {compute:.3g} times as slowly{sends}"


def _parts(timed: Timed) -> Table:
    shown = table("part of a step", "!>time", "!>share", title=f"A training step. {LABEL}")
    parts = (
        ("computation", timed.compute),
        ("tensor parallelism, exposed", timed.tensor),
        ("sequence parallelism, exposed", timed.sequence),
        ("expert parallelism, exposed", timed.expert),
        ("between pipeline stages, exposed", timed.stages),
        ("pipeline bubble", timed.bubble),
        ("data parallelism, exposed", timed.data),
        ("all", timed.total),
    )
    for name, seconds in parts:
        if seconds or name in ("computation", "all"):
            add(shown, name, format_seconds(seconds), format_percent(seconds / timed.total))
    return shown


def _collectives(timed: Timed) -> Table:
    columns = ("collective", "!>GPUs", "!>size", "!>times", "!>one takes", "!>all take", "NCCL's way")
    shown = table(*columns, title=f"Collectives of a GPU. {LABEL}")
    for call in timed.calls:
        name = f"{call.name}: {call.operation}"
        times = (format_seconds(call.seconds), format_seconds(call.seconds * call.times))
        add(shown, name, str(call.ranks), format_bytes(call.size), str(call.times), *times, call.by)
    return shown


def _changes(timed: Timed, others: Sequence[Change]) -> Table:
    shown = table("change", "!>step", "!>exposed", "!>speed", title=f"What a change would give. {LABEL}")
    for one in others:
        speed = f"{timed.total / one.timed.total:.3f}x"
        add(shown, one.name, format_seconds(one.timed.total), format_seconds(one.timed.exposed), speed)
    return shown


def jobs_tables(jobs: Sequence[Shared], meetings: Sequence[Meeting]) -> Iterator[Table | Text]:
    """Two jobs that share a network."""
    shown = table(
        "!job", "!>a step alone", "!>beside", "!>times as long", "!>longest", title=f"Both jobs at once. {LABEL}"
    )
    for number, job in enumerate(jobs, 1):
        times = f"{job.mean / job.alone:.3f}"
        add(shown, str(number), *map(format_seconds, (job.alone, job.mean)), times, format_seconds(job.longest))
    yield shown
    yield Text()
    shown = table("!job", "collective", "beside", "!>times as long", title=f"While both communicate. {LABEL}")
    for one in meetings:
        add(shown, str(one.job), one.call, one.beside, f"{one.times:.2f}")
    yield shown


def _memory(step: Step) -> str:
    needed = step.state_bytes()
    own = step.topology.device(step.topology.ids("gpu")[0]).memory_bytes
    words = f"parameters, gradients and optimizer take {format_bytes(needed)} of a GPU"
    if not own:
        return f"{words}, whose memory is not known"
    fits = "" if needed < own else ": they do not fit"
    return f"{words}, which has {format_bytes(own)}{fits}; activations come on top"


def nccl_table(cases: Sequence[Case]) -> Table:
    """What "nccl" took for each range of sizes, and how much faster it was than the fastest of the others."""
    shown = table("!>GPUs", "!sizes", "taken", ">times the speed of the fastest other", title=f"nccl. {LABEL}")
    told = sorted(
        (case for case in cases if case.chosen), key=lambda case: (case.ranks, case.direct, case.variant, case.size)
    )
    groups = groupby(told, lambda case: (case.ranks, case.direct, case.of_variant(), chosen_words(case)))
    for (ranks, _, variant, words), group in groups:
        row = list(group)
        sizes = dict.fromkeys(format_bytes(case.size) for case in (row[0], row[-1]))
        gains = dict.fromkeys(_gain(case) for case in (row[0], row[-1]))
        add(shown, f"{ranks}{variant}", " to ".join(sizes), words, " to ".join(gains))
    return shown


def _gain(case: Case) -> str:
    chosen = case.chosen or {}
    taken = chosen["algorithm"], chosen["protocol"]
    others = [one for one in chosen["tried"] if "seconds" in one and (one["algorithm"], one["protocol"]) != taken]
    if not others:
        return "the only one"
    fastest = min(others, key=lambda one: float(one["seconds"]))
    name = str(fastest["algorithm"]).removeprefix("nccl_")
    words = f"{name} by {fastest['protocol']}" if name in ("ring", "tree") else name
    return f"{fastest['seconds'] / case.seconds:.2f} ({words})"
