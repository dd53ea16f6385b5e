"""From three counters to a verdict: by hardware, by software, or why it cannot be said."""

from __future__ import annotations

from dataclasses import dataclass

COUNT = 1000  # packets that are sent for a rule
_LEAST = 100  # packets that tell something when nothing is sent
_FEW = 0.1  # of the packets: traffic of others beside ours
VERDICTS = ("hardware", "software", "both", "neither", "disagree", "unknown")


@dataclass(frozen=True)
class Counted:
    """What moved meanwhile. `sent`: 0 if the traffic was that of others. `processors`: what they saw of what arrived;
    None if it is not told. `first`: another rule that counted as many."""

    sent: int
    hardware: int
    software: int
    arrived: int
    processors: int | None
    first: str = ""


def judge(counted: Counted) -> tuple[str, str]:
    """Verdict and reason."""
    ours = counted.hardware + counted.software
    whole = counted.sent or ours
    if whole < _LEAST:
        return "unknown", f"too little traffic: the rule counted {ours} packets"
    few, most = _FEW * whole, (1 - _FEW) * whole
    if counted.arrived < most and ours <= few:
        return "unknown", f"of {whole} packets {counted.arrived} arrived at the interface"
    if ours <= few:
        other = f"{counted.first} takes them first" if counted.first else "neither the card nor the kernel counts them"
        return "neither", f"{counted.arrived} packets arrived, the rule counted {ours}: {other}"
    if ours < most:
        return "unknown", f"of {whole} packets the rule counted {ours}"
    if counted.hardware > few and counted.software > few:
        return "both", f"the card counts {counted.hardware} packets, the kernel {counted.software}"
    return _third(counted, few, most)


def _third(counted: Counted, few: float, most: float) -> tuple[str, str]:
    """One of card and kernel has counted all; whether the interface confirms it."""
    told = f"the card counts {counted.hardware} packets, the kernel {counted.software}"
    seen, arrived = counted.processors, counted.arrived
    by_card = counted.hardware > few
    if arrived < most:
        return "disagree", f"{told}, but only {arrived} arrived at the interface"
    if seen is None and by_card:
        return "unknown", f"{told}; the third counter is missing: ip tells no cpu_hit of the interface"
    if seen is None:
        return "software", f"{told}, and {arrived} arrived at the interface"
    told += f", and the processors saw {seen} of {arrived} that arrived"
    if by_card and seen <= few:
        return "hardware", told
    if not by_card and seen >= most:
        return "software", told
    if by_card and arrived > most + 2 * few:  # who sent what they saw cannot be told
        return "unknown", f"{told}: others send too; try again when it is quiet"
    return "disagree", told
