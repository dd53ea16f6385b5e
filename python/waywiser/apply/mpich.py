"""Settings of MPICH: CVARs for GPU memory, from the sizes at which measured curves cross."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from waywiser.apply.facts import Machine
from waywiser.apply.node_switches import between_nodes
from waywiser.apply.setting import LeftOut, Setting
from waywiser.profile import Point
from waywiser.units import format_bytes, format_seconds


def proposed(machine: Machine, known: Mapping[str, str]) -> Iterator[Setting | LeftOut]:
    """All settings that may be useful on this machine."""
    for word, source, destination in (("H2D", "host", "gpu"), ("D2H", "gpu", "host")):
        slow, fast = (
            _curve(machine, "copy_engine", source, destination),
            _curve(machine, "bar_copy", source, destination),
        )
        sizes = sorted(slow.keys() & fast.keys())
        wins = [size for size in sizes if fast[size].high < slow[size].low]
        if wins:
            size = max(wins)
            why = (
                f"{format_bytes(size)}: copies by the CPU {format_seconds(fast[size].seconds)}, "
                f"by the copy engine {format_seconds(slow[size].seconds)}"
            )
            name = f"MPIR_CVAR_GPU_FAST_COPY_MAX_SIZE_{word}"
            yield Setting("mpich", name, str(size), known.get(name, ""), why, name)
    yield from _gpu_direct(machine, known)


def _gpu_direct(machine: Machine, known: Mapping[str, str]) -> Iterator[Setting | LeftOut]:
    """One switch, off by default, and the size above which it matters: small messages go through host memory."""
    single = between_nodes(machine.profile).deciding.single(machine.purpose)
    name = "MPIR_CVAR_CH4_OFI_ENABLE_HMEM"
    if single is None:
        return
    if single.switches[0] == "on":
        yield Setting("mpich", name, "1", known.get(name, ""), single.text, name, not machine.label)
    else:
        yield LeftOut("mpich", name, "0", f"the default; {single.text}")


def _curve(machine: Machine, mechanism: str, source: str, destination: str) -> dict[int, Point]:
    found: dict[int, Point] = {}
    for one in machine.profile.series if machine.profile else ():
        places = one.path.source.startswith(source), one.path.destination.startswith(destination)
        if one.path.mechanism == mechanism and one.operation == "latency" and all(places):
            for point in one.points:
                if point.bytes not in found or point.seconds < found[point.bytes].seconds:
                    found[point.bytes] = point
    return found
