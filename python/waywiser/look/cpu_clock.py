"""How the kernel sets the clocks of the CPUs."""

from __future__ import annotations

import re
from dataclasses import dataclass

from waywiser.look.finding import Unknown
from waywiser.look.root import Root

_FOLDER = "/sys/devices/system/cpu"


@dataclass(frozen=True)
class CpuClock:
    """The policy of one CPU; MHz, 0: not told."""

    cpu: int
    governor: str
    driver: str
    preference: str  # of energy or performance, of CPUs that set their clocks themselves
    limit: int
    most: int


def cpu_clocks(root: Root) -> list[CpuClock]:
    """The policies of all CPUs that are on. Raises Unknown if the kernel tells none."""
    numbers = (re.fullmatch(r"cpu(\d{1,5})", name) for name in root.names(_FOLDER))
    found = []
    for number in sorted(int(one[1]) for one in numbers if one):
        folder = f"{_FOLDER}/cpu{number}/cpufreq"
        if governor := root.text(f"{folder}/scaling_governor"):
            found.append(
                CpuClock(
                    number,
                    governor,
                    root.text(f"{folder}/scaling_driver") or "",
                    root.text(f"{folder}/energy_performance_preference") or "",
                    (root.number(f"{folder}/scaling_max_freq") or 0) // 1000,
                    (root.number(f"{folder}/cpuinfo_max_freq") or 0) // 1000,
                )
            )
    if not found:
        raise Unknown("needs cpufreq/scaling_governor of the CPUs, which this kernel does not tell (as in most VMs)")
    return found
