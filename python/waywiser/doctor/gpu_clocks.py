"""What nvidia-smi says about GPUs that run slower than they could."""

from __future__ import annotations

import re

from waywiser.look import nvidia
from waywiser.look.nvidia import Section, value

_SLOWED = re.compile(r"Slowdown|Thermal|Power Brake|HW")
_LOW = 0.5  # of the highest clock; between this and 1 lie the clocks of load, which power limits
_SET = 0.95  # of the default: rounding to the next clock of the table


def slowed(gpus: dict[str, Section]) -> list[str]:
    """A line for each reason why a GPU is slow now, or will be by its settings."""
    return [f"{bus}: {line}" for bus, gpu in gpus.items() for line in (*_reasons(gpu), *_set_low(gpu), *_low(gpu))]


def _active(gpu: Section) -> dict[str, bool]:
    """The reasons for the clocks, and whether each is active."""
    found = gpu.get("Clocks Event Reasons") or gpu.get("Clocks Throttle Reasons") or {}
    return {name: text == "Active" for name, text in found.items()} if isinstance(found, dict) else {}


def _reasons(gpu: Section) -> list[str]:
    return [name for name, active in _active(gpu).items() if active and _SLOWED.search(name)]


def _set_low(gpu: Section) -> list[str]:
    """Clocks of applications that were set below their default."""
    found = []
    for name in ("Graphics", "Memory"):
        clock, usual = (
            nvidia.megahertz(value(gpu, section, name))
            for section in ("Applications Clocks", "Default Applications Clocks")
        )
        if clock and usual and clock < _SET * usual:
            found.append(f"{name.lower()} clock of applications set to {clock} of {usual} MHz")
    return found


def _low(gpu: Section) -> list[str]:
    """Low clocks under load, for which no limit of power is the reason: locked, for instance."""
    active = _active(gpu)
    if active.get("Idle", True) or active.get("SW Power Cap") or value(gpu, "Performance State") != "P0":
        return []
    found = []
    for name in ("SM", "Memory"):
        clock, most = (nvidia.megahertz(value(gpu, section, name)) for section in ("Clocks", "Max Clocks"))
        if clock and most and clock < _LOW * most:
            found.append(f"{name} clock {clock} of {most} MHz under load")
    return found
