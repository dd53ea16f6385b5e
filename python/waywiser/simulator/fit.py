"""Fits the simulator's costs of a machine to a measured profile.

Fits the costs one after the other by golden steps in their logarithm, each to the series of its mechanism. It minimises
the mean of log(1 + |log(predicted / measured)| / 0.05), so that disturbed points count little.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from waywiser.simulator.measured import Measured, Times, key_of
from waywiser.stages import Show

# Mechanism -> costs that change its times.
FITTED: dict[str, tuple[str, ...]] = {
    "copy_engine": (
        "copy.issue", "copy.issue_peer", "copy.issue_local", "copy.hold", "copy.hold_peer", "copy.hold_local",
        "copy.finish", "copy.finish_d2h", "pcie.share", "gpu.memory_share", "copy.peer_rate", "gpu.turn",
    ),
    "sm_copy": ("kernel.issue", "kernel.hold", "kernel.finish", "sm.block_rate", "sm.share"),
    "host_staged": (
        "staged.issue", "staged.issue_chunk", "staged.finish", "pageable.issue", "pageable.h2d_rate",
        "pageable.d2h_rate",
    ),
    "host_copy": (
        "host.copy_start", "host.fence", "host.thread_start", "host.thread_each", "host.near_rate", "host.cache_rate",
        "host.copy_rate", "host.past_rate", "memory.rate", "process.signal",
    ),
    "courier": ("courier.start", "courier.rate"),
    "split": ("split.issue",),
    "ucx": (
        "ucx.issue", "ucx.overhead", "ucx.segment", "ucx.shm_rate", "ucx.cma_rate", "ucx.cma_cached", "ucx.rendezvous",
        "ucx.ipc_small", "ucx.ipc_large", "ucx.ipc_threshold", "ucx.ipc_hold", "ucx.ipc_rate",
        "tcp.issue", "tcp.rate", "tcp.loopback",
    ),
}  # fmt: skip
_STEPS = (2.0, 1.3, 1.08, 1.02)
_SCALE = 0.05


def _loss(measured: Measured, predicted: Times, half: int | None) -> float:
    total, count = 0.0, 0
    for series in measured.series:
        times = predicted.get(key_of(series))
        if times is None:
            continue
        for size, seconds in measured.points(series, half).items():
            if size in times:
                total += math.log1p(abs(math.log(times[size] / seconds)) / _SCALE)
                count += 1
    return total / max(1, count)


def fit(measured: Measured, start: dict[str, float], half: int | None, show: Show) -> dict[str, float]:
    """The costs that fit the points (of one half of the sizes) best."""
    values: dict[str, float] = {}
    groups = [(mechanism, names) for mechanism, names in FITTED.items() if _has(measured, mechanism)]
    total = sum(len(names) for _, names in groups) * len(_STEPS)
    done = 0
    for step in _STEPS:
        for mechanism, names in groups:

            def loss(changed: dict[str, float], of: str = mechanism) -> float:
                return _loss(measured, measured.predict({**values, **changed}, {of}, half), half)

            best = loss({})
            for name in names:
                show(done, total, 0.0, name)
                done += 1
                value = values.get(name, start[name] or _first_guess(measured, name, half))
                values[name], best = _walk(name, value, step, loss, best if name in values else None)
    return values


def _has(measured: Measured, mechanism: str) -> bool:
    return any(series.path.mechanism == mechanism for series in measured.series)


def _first_guess(measured: Measured, name: str, half: int | None) -> float:
    """Rates that the topology lacks: a memory carries three times the rate of the fastest large copy within it."""
    if name != "memory.rate":
        return 0
    large = [
        size / seconds
        for series in measured.series
        if series.path.mechanism == "host_copy"
        for size, seconds in measured.points(series, half).items()
        if size >= 1 << 28
    ]
    return 3 * max(large, default=0.0)


def _walk(
    name: str, value: float, step: float, loss: Callable[[dict[str, float]], float], known: float | None
) -> tuple[float, float]:
    """Moves up or down by `step` while the loss decreases; a share stays at most 1. `known`: the loss at `value`."""
    best = loss({name: value}) if known is None else known
    if value <= 0:
        return value, best
    for factor in (step, 1 / step):
        moved = False
        for _ in range(6):
            trial = value * factor
            if "share" in name and trial > 1:
                break
            found = loss({name: trial})
            if found >= best - 1e-9:
                break
            best, value, moved = found, trial, True
        if moved:
            break
    return value, best
