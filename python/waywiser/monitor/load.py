"""Warns of links that deliver less than their profile while under load."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

from waywiser.monitor.counters import NETWORK, NVLINK, PCIE, RDMA
from waywiser.profile import Profile
from waywiser.units import format_rate

_EXPECTED_SHARE = 0.8
_LOADED_SHARE = 0.3
_WINDOW = 10
Key = tuple[str, str, str]


def expected_rates(profile: Profile | None, ports: Mapping[str, float]) -> dict[str, float]:
    """Kind of link -> measured bytes per second one way; for RDMA the rate of the ports in Gb/s (`ports`)."""
    found: dict[str, float] = {}
    for one in profile.series if profile and not profile.warning() else ():
        gpus = [place.startswith("gpu") for place in one.path.pair]
        if one.operation != "streaming" or one.path.mechanism != "copy_engine" or not one.points:
            continue
        kind = NVLINK if all(gpus) and one.path.source != one.path.destination else PCIE if any(gpus) else ""
        if kind and not (kind == PCIE and all(gpus)):
            found[kind] = max(found.get(kind, 0.0), *(point.rate for point in one.points))
    if ports:
        found[RDMA] = min(ports.values()) * 1e9 / 8
    return found


class LoadWatch:
    """Keeps the last samples of each link. Under load: more than 30 % of the profile in every sample."""

    def __init__(self, expected: Mapping[str, float]) -> None:
        self._expected = expected
        self._seen: dict[Key, deque[float]] = {}

    def add(self, rates: Mapping[Key, float]) -> list[str]:
        """Takes one sample; returns a line for each link that is under load and below 80 % of its profile."""
        warnings = []
        for key, rate in rates.items():
            expected = self._expected.get(key[0])
            if not expected or key[0] == NETWORK:
                continue
            seen = self._seen.setdefault(key, deque(maxlen=_WINDOW))
            seen.append(rate)
            if len(seen) == _WINDOW and min(seen) > _LOADED_SHARE * expected and max(seen) < _EXPECTED_SHARE * expected:
                share = max(seen) / expected
                told = f"{format_rate(max(seen))} of {format_rate(expected)} ({100 * share:.0f} %) under load"
                warnings.append(f"{key[1]} {key[0]} {key[2]}: {told}")
        return warnings
