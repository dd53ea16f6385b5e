"""Takes successive samples: counters, rates and warnings."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from waywiser.look import rdma
from waywiser.look.finding import Unknown
from waywiser.look.root import Root
from waywiser.monitor.counters import Sample, fresh, moved_between, rates_between, read_counters
from waywiser.monitor.load import Key, LoadWatch, expected_rates
from waywiser.profile import Profile


@dataclass
class View:
    """The present state. `job_seconds` and `job_bytes` count from the first sample."""

    sample: Sample
    rates: dict[Key, float] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    job: str = ""
    job_seconds: float = 0.0
    job_bytes: dict[str, int] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """A document of schema waywiser.traffic: bytes, bytes per second and events of each link and direction."""
        rows = [
            {"link": kind, "device": device, "direction": word, "bytes": self.sample.bytes.get(key),
             "bytes_per_second": self.rates.get(key)}
            for key in sorted({*self.sample.bytes, *self.rates})
            for kind, device, word in [key]
        ]  # fmt: skip
        errors = [
            {"link": kind, "device": device, "event": event, "count": count}
            for (kind, device, event), count in sorted(self.sample.errors.items())
        ]
        job = {"name": self.job, "seconds": self.job_seconds, "bytes": self.job_bytes} if self.job else None
        told = {"traffic": rows, "errors": errors, "slow": self.warnings, "missing": self.sample.missing, "job": job}
        return {"schema": "waywiser.traffic", "version": 1, **told}


class Watcher:
    """Takes a sample on request; `look` returns the machine, `clock` the time in seconds."""

    def __init__(
        self,
        profile: Profile | None = None,
        job: str = "",
        look: Callable[[], Root] = fresh,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._look, self._clock, self._job = look, clock, job
        self._first = self._last = read_counters(look())
        self._start = self._then = clock()
        self._loads = LoadWatch(expected_rates(profile, _port_rates(look())))

    def view(self) -> View:
        """The state now, with rates since the last call."""
        sample, now = read_counters(self._look()), self._clock()
        rates = rates_between(self._last, sample, max(now - self._then, 1e-9))
        self._last, self._then = sample, now
        moved = moved_between(self._first, sample)
        return View(sample, rates, self._loads.add(rates), self._job, now - self._start, moved)


def _port_rates(root: Root) -> dict[str, float]:
    try:
        return {port.name: port.rate for port in rdma.ports(root) if port.state == "ACTIVE" and port.rate}
    except Unknown:
        return {}
