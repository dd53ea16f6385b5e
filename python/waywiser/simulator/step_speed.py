"""How fast a GPU computes in a training step: by the operations of the model, or as a trace of one GPU has it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from waywiser.errors import InputError
from waywiser.simulator.profiler_trace import read_trace
from waywiser.simulator.step_words import number, pairs_in, whole
from waywiser.simulator.traced import Traced
from waywiser.simulator.training import PRECISIONS, Layout, Model
from waywiser.topology.data_sheets import peak_of

UTILISATION = 0.4
_SPEED = {"peak": "989e12", "utilisation": "0.4", "slowdown": "1", "trace": "FILE", "sequences": "8"}


@dataclass(frozen=True)
class Speed:
    """Of a GPU: operations a second by its data sheet, and the share of them that a training program reaches; or how
    long it took in a trace."""

    peak: float
    utilisation: float
    source: str
    slowdown: float | None = None  # of computation while the GPU communicates; None: by the kernels of a trace
    traced: Traced | None = None

    @property
    def reached(self) -> float:
        return self.peak * self.utilisation


def speed_in(text: str, topology: Any, model: Model, layout: Layout) -> Speed:
    """ "peak=989e12,utilisation=0.4" or "trace=FILE,sequences=8" -> the speed of a GPU; the peak of 16-bit arithmetic
    is known for some GPUs.

    Raises InputError."""
    option = "--gpu"
    found = pairs_in(text, option, _SPEED)
    slowdown = number(found, "slowdown", option, 1, 100) if "slowdown" in found else None
    if slowdown is not None and slowdown < 1:
        raise InputError(f"{option}: slowdown must be at least 1, not {slowdown:g}")
    if "trace" in found:
        if found.keys() & {"peak", "utilisation"}:
            raise InputError(f"{option}: peak and utilisation are not for a trace")
        sequences = whole(found, "sequences", option, model.batch // layout.data)
        traced = read_trace(Path(found["trace"]), sequences)
        return Speed(0.0, 0.0, f"trace {found['trace']}", slowdown, traced)
    if "sequences" in found:
        raise InputError(f"{option}: sequences is for trace=FILE")
    utilisation = number(found, "utilisation", option, UTILISATION, 1)
    if "peak" in found:
        return Speed(number(found, "peak", option, None, 1e21), utilisation, "--gpu", slowdown)
    name = topology.device(topology.ids("gpu")[0]).name
    known = peak_of(name) if PRECISIONS[model.precision] == 2 else None
    if known is None:
        precision = model.precision
        raise InputError(f"{option}: the rate of a {name} with {precision} is not known: write {option} peak=100e12")
    return Speed(known[0], utilisation, known[1], slowdown)


class Work(NamedTuple):
    """Seconds of a GPU's computation in a step, all micro-batches together."""

    forward: float
    backward: float
    optimizer: float = 0.0

    @property
    def total(self) -> float:
        return self.forward + self.backward + self.optimizer


NO_WORK = Work(0.0, 0.0)


def work_of(model: Model, layout: Layout, speed: Speed) -> Work:
    """A trace is taken to have the whole model on one GPU, whose computation is shared out evenly."""
    if speed.traced is None:
        total = model.operations / (layout.gpus * speed.reached)
        return Work(total * model.forward_share, total * (1 - model.forward_share))
    traced, parts = speed.traced, layout.tensor * layout.pipeline
    share = model.batch / layout.data / traced.sequences / parts / layout.sequence
    optimizer = traced.optimizer / parts / (layout.replicas if layout.shard else 1)
    return Work(traced.forward * share, traced.backward * share, optimizer)
