"""Stands in for the measuring part of the core: made-up results, at once, without touching the machine."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from typing import Any

import made_up
import pytest

import waywiser._core as core

Progress = Callable[[str], bool]


class FakeCore:
    """What the verbs call. `interrupt_at` presses Ctrl-C at that step of measuring, at
    `fail_at` the core fails, having handed out what it had at each step before; `calls` has what was asked."""

    def __init__(self, gpus: int) -> None:
        self.gpus = gpus
        self.profile = made_up.profile(gpus)
        self.interrupt_at: int | None = None
        self.interrupt_by = signal.SIGINT
        self.fail_at: int | None = None
        self.calls: list[tuple[str, Any]] = []

    def install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Puts this in the place of the core's functions."""
        for name in ("discover", "measure", "choose", "explain", "verify_plan", "peer_report"):
            monkeypatch.setattr(core, name, getattr(self, name), raising=False)

    def discover(self, root: str = "") -> Any:
        return core.Topology.from_json(json.dumps(made_up.topology(self.gpus)), "made up")

    def measure(
        self, topology: Any, options: str, previous: str | None, progress: Progress, other_machine: Any = None
    ) -> str:
        self.calls.append(("measure", (json.loads(options), previous)))
        for step in range(5):
            if step == self.interrupt_at:
                os.kill(os.getpid(), self.interrupt_by)
            told = {"done": step, "total": 5, "seconds_left": 5.0 - step, "label": "[red]gpu0>gpu1[/] \x1b[31m4K"}
            if step == self.fail_at:
                raise core.Error("the GPU fell off the bus")
            if self.fail_at is not None:
                told["profile"] = {**self.profile, "series": self.profile["series"][:step]}
            if not progress(json.dumps(told)):
                return json.dumps({**self.profile, "series": self.profile["series"][: 4 * step]})
        return json.dumps(self.profile)

    def choose(self, profile: str, options: str) -> str:
        return json.dumps(made_up.plan(json.loads(profile)))

    def explain(self, profile: str, plan: str, source: str, destination: str, processes: int, *rest: Any) -> str:
        operation, size, _rail = rest
        self.calls.append(("explain", (source, destination, processes, operation, size)))
        measured = {"seconds": 2e-6, "low": 1.9e-6, "high": 2.1e-6}
        fast = {
            "label": "copy_engine",
            "measured": measured,
            "predicted": 2e-6,
            "rate": 32e9,
            "ratio": 1.0,
            "why": "chosen",
        }
        slow = {
            "label": "relay(via=gpu2)",
            "measured": None,
            "predicted": 4e-6,
            "rate": 16e9,
            "ratio": 2.0,
            "why": "slower",
        }
        missing = {"label": "bar_copy", "reason": "libgdrapi.so.2: cannot open"}
        found = {"bytes": size, "chosen": "copy_engine", "candidates": [fast, slow], "unavailable": [missing]}
        return json.dumps(found)

    def verify_plan(
        self, topology: Any, profile: str, plan: str, options: str, progress: Progress, other_machine: Any = None
    ) -> str:
        self.calls.append(("verify", json.loads(options)))
        found = made_up.verification(json.loads(plan))
        return json.dumps({key: found[key] for key in ("cases", "within_5_percent", "worst_ratio", "rows")})

    def peer_report(self, topology: Any, options: str, progress: Progress) -> str:
        side = [[1.0] * self.gpus] * self.gpus
        count, right = [[18] * self.gpus] * self.gpus, [[False] * self.gpus] * self.gpus
        links = {"stated": count, "inferred": [[17] * self.gpus] * self.gpus, "mismatch": right}
        return json.dumps({"connectivity": side, "one_way": {"off": side, "on": side}, "nvlinks": links})


@pytest.fixture
def gpu_core(monkeypatch: pytest.MonkeyPatch) -> FakeCore:
    fake = FakeCore(gpus=4)
    fake.install(monkeypatch)
    return fake
