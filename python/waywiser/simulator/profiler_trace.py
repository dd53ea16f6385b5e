"""What a GPU computed in a training step, from a trace of PyTorch's profiler (Kineto, Chrome's trace format), or of
Chakra, which `chakra_trace.py` reads.

A kernel belongs to the step (`ProfilerStep#N`) in which the host launched it, and to the backward pass if the autograd
engine launched it, to the optimizer if `Optimizer.step` or `Optimizer.zero_grad` did, else to the forward pass. Time in
which the GPU waits for the host counts for the kernel that follows; time in which only kernels of NCCL run does not
count. The first step is left out if there are others, as what came before it is not known.
"""

from __future__ import annotations

import json
import zlib
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

from waywiser.errors import InputError
from waywiser.files import read_bytes
from waywiser.simulator.chakra_trace import Chakra, is_chakra, read_chakra
from waywiser.simulator.traced import BACKWARD, FORWARD, OPTIMIZER, Kernels, Traced, is_product, traced_of

_ON_GPU = ("kernel", "gpu_memcpy", "gpu_memset")
_MOST_BYTES = 1 << 30  # of a trace
_GZIP, _GZIP_BITS = b"\x1f\x8b", 31

Interval = tuple[float, float]


class _Spans:
    """Intervals of one thread, joined where they overlap."""

    def __init__(self, intervals: Iterable[Interval]) -> None:
        self.begins: list[float] = []
        self.ends: list[float] = []
        for begin, end in sorted(intervals):
            if self.ends and begin <= self.ends[-1]:
                self.ends[-1] = max(self.ends[-1], end)
            else:
                self.begins.append(begin)
                self.ends.append(end)

    def hold(self, moment: float) -> bool:
        place = bisect_right(self.begins, moment)
        return place > 0 and moment <= self.ends[place - 1]

    def within(self, begin: float, end: float) -> float:
        """How much of [begin, end] they cover."""
        covered = 0.0
        for place in range(max(0, bisect_right(self.begins, begin) - 1), len(self.begins)):
            if self.begins[place] >= end:
                break
            covered += max(0.0, min(end, self.ends[place]) - max(begin, self.begins[place]))
        return covered


def read_trace(file: Path, sequences: int) -> Traced:
    """Raises InputError: not such a trace."""
    data = read_bytes(file, _MOST_BYTES)
    try:
        if data.startswith(_GZIP):
            data = zlib.decompressobj(_GZIP_BITS).decompress(data, _MOST_BYTES)
        chakra = read_chakra(data) if is_chakra(data) else None
        events = [] if chakra else json.loads(data)["traceEvents"]
        found = [one for one in map(_event, events) if one is not None]
    except (ValueError, KeyError, TypeError, AttributeError, zlib.error, RecursionError):
        raise InputError(
            f"--gpu trace={file}: not a trace of PyTorch's profiler (export_chrome_trace) or of Chakra (.et)"
        ) from None
    where = f"--gpu trace={file}"
    return _of_chakra(chakra, where, sequences) if chakra else _Reader(found, where).traced(sequences)


def _of_chakra(found: Chakra, where: str, sequences: int) -> Traced:
    if not found.took[BACKWARD].seconds:
        raise InputError(f"{where}: no kernel of a backward pass in it, or no durations")
    return traced_of(found.took, found.steps, sequences)


@dataclass(frozen=True)
class _Event:
    name: str
    kind: str
    thread: tuple[Any, Any]
    begin: float
    end: float
    launch: Any  # what a launch and its kernel have in common, or None


def _event(event: Any) -> _Event | None:
    """None: not something that lasted."""
    if event.get("ph") != "X":
        return None
    begin, took = float(event["ts"]), float(event["dur"])
    if not (abs(begin) < 1e18 and 0 <= took < 1e18):
        raise ValueError("a time without sense")
    launch = (event.get("args") or {}).get("correlation")
    thread = (event.get("pid"), event.get("tid"))
    hash((launch, thread))
    return _Event(str(event["name"]), str(event.get("cat")), thread, begin, begin + took, launch)


def _of_nccl(event: _Event) -> bool:
    return event.name.startswith(("ncclDevKernel", "ncclKernel"))


class _Passes:
    """Microseconds of all steps, by phase."""

    def __init__(self) -> None:
        self.took = {phase: Kernels(0.0, 0.0) for phase in (FORWARD, BACKWARD, OPTIMIZER)}

    def add(self, phase: str, kernel: _Event, took: float, waited: float = 0.0) -> None:
        product = is_product(kernel.name)
        self.took[phase] = self.took[phase].plus(Kernels(took * product, took * (not product), waited))

    def of(self, phase: str, steps: int) -> Kernels:
        products, others, waits = (micros * 1e-6 / steps for micros in astuple(self.took[phase]))
        return Kernels(products, others, waits)


class _Reader:
    def __init__(self, events: Sequence[_Event], where: str) -> None:
        self.where = where
        self.kernels = sorted((one for one in events if one.kind in _ON_GPU), key=lambda one: (one.begin, one.end))
        self.launches = {one.launch: one for one in events if one.kind not in _ON_GPU and one.launch is not None}
        self.backward = self._by_thread(events, "autograd::engine::evaluate_function")
        self.optimizer = self._by_thread(events, "Optimizer.")
        self.nccl = _Spans((one.begin, one.end) for one in self.kernels if _of_nccl(one))
        steps = (one for one in events if one.kind == "user_annotation" and one.name.startswith("ProfilerStep#"))
        self.steps = sorted(steps, key=lambda one: one.begin)
        self.begins = [one.begin for one in self.steps]

    @staticmethod
    def _by_thread(events: Sequence[_Event], prefix: str) -> dict[Any, _Spans]:
        found: dict[Any, list[Interval]] = {}
        for one in events:
            if one.kind in ("cpu_op", "user_annotation") and one.name.startswith(prefix):
                found.setdefault(one.thread, []).append((one.begin, one.end))
        return {thread: _Spans(intervals) for thread, intervals in found.items()}

    def _phase(self, launch: _Event) -> str:
        for phase, spans in ((OPTIMIZER, self.optimizer), (BACKWARD, self.backward)):
            if launch.thread in spans and spans[launch.thread].hold(launch.begin):
                return phase
        return FORWARD

    def _step(self, launch: _Event) -> int:
        """Its number from 0 on; -1: in none."""
        number = bisect_right(self.begins, launch.begin) - 1
        return number if number >= 0 and launch.begin <= self.steps[number].end else -1

    def traced(self, sequences: int) -> Traced:
        if not self.steps:
            raise InputError(f"{self.where}: no ProfilerStep# in it: call step() of the profiler after each step")
        first = min(1, len(self.steps) - 1)
        passes, reached = _Passes(), None
        for kernel in self.kernels:
            launch = self.launches.get(kernel.launch)
            if launch is None or _of_nccl(kernel):
                continue
            number = self._step(launch)
            if reached is not None and number >= first and kernel.end > reached:
                waited = max(0.0, kernel.begin - reached)
                waited -= self.nccl.within(reached, kernel.begin) if waited else 0.0
                passes.add(self._phase(launch), kernel, kernel.end - max(kernel.begin, reached), waited)
            elif reached is None and number >= first:
                passes.add(self._phase(launch), kernel, kernel.end - kernel.begin)
            reached = kernel.end if reached is None else max(reached, kernel.end)
        count = len(self.steps) - first
        made = {phase: passes.of(phase, count) for phase in (FORWARD, BACKWARD, OPTIMIZER)}
        if not made[BACKWARD].seconds:
            what = "kernel of a backward pass" if any(one.seconds for one in made.values()) else "kernel of a step"
            raise InputError(f"{self.where}: no {what} in it: profile with activities=[CPU, CUDA]")
        return traced_of(made, count, sequences)
