"""Checks of the host's settings that cost time or end programs: limits, moving pages, clocks of the CPUs."""

from __future__ import annotations

from collections.abc import Sequence

from waywiser.errors import InputError
from waywiser.look import machine, pci, rdma
from waywiser.look.cgroup import memory_limit
from waywiser.look.cpu_clock import CpuClock, cpu_clocks
from waywiser.look.finding import Finding, Unknown, absent, ok, problem, warning
from waywiser.look.job import started
from waywiser.look.root import Root
from waywiser.units import format_bytes

_OWN_FILES = 256  # libraries, devices, shared memory of one rank
_FEW_FILES = 4096
_LITTLE_MEMORY, _SOME_MEMORY = 1 << 30, 4 << 30  # for one rank, without and with the driver of a GPU
_CHOOSE_THEMSELVES = ("intel_pstate", "amd-pstate-epp", "amd_pstate_epp")
_WHOLE = 0.95  # of the highest clock


def open_files(root: Root) -> Finding:
    """D48."""
    limit = machine.limit(root, "Max open files")
    if limit is None:
        return ok("no limit on open files")
    try:
        ranks = started(root.environment).size
    except InputError as error:
        raise Unknown(f"needs the number of ranks: {error}") from error
    said = f"at most {limit} open files"
    if limit < ranks + _OWN_FILES:
        return problem(f"{said}; a rank may hold a socket to each of {ranks} ranks, and some {_OWN_FILES} of its own")
    if limit < _FEW_FILES and (pci.gpus(root) or rdma.devices(root)):
        return warning(f"{said}: jobs of more than {limit - _OWN_FILES} ranks may not start")
    return ok(said)


def memory(root: Root) -> Finding:
    """D52."""
    limit = memory_limit(root)
    if limit is None:
        return ok("no limit on the memory of this process")
    ranks = machine.local_size(root)
    least = _SOME_MEMORY if pci.gpus(root) else _LITTLE_MEMORY
    said = f"{format_bytes(limit.left)} left of the control group's {format_bytes(limit.bytes)}"
    if limit.killed:
        return warning(f"the kernel has killed {limit.killed} processes for want of memory; {said}")
    if limit.left < _LITTLE_MEMORY * ranks:
        return problem(f"{said} for {ranks} rank{'s' if ranks > 1 else ''}: the kernel kills one that takes more")
    if limit.left < least * ranks:
        return warning(f"{said}: little for {ranks} rank{'s' if ranks > 1 else ''} with GPUs; /dev/shm counts, too")
    return ok(said)


def moving_pages(root: Root) -> Finding:
    """D50."""
    nodes = len(machine.numa_nodes(root))
    if nodes < 2:
        return absent("one NUMA node" if nodes else "no NUMA node is known")
    value = root.number("/proc/sys/kernel/numa_balancing")
    if value is None:
        raise Unknown("needs /proc/sys/kernel/numa_balancing, which is not there")
    if value:
        return warning(f"numa_balancing is {value}: the kernel unmaps pages to watch them, and moves buffers in use")
    return ok("the kernel does not move pages between NUMA nodes")


def clocks(root: Root) -> Finding:
    """D49."""
    found = cpu_clocks(root)
    capped = [one for one in found if 0 < one.limit < _WHOLE * one.most]
    lowest = [one for one in found if one.governor == "powersave" and one.driver not in _CHOOSE_THEMSELVES]
    if lowest:
        return problem(f"governor powersave keeps {_cpus(lowest, len(found))} at the lowest clock")
    if capped:
        return warning(f"{_cpus(capped, len(found))}: at most {capped[0].limit} of {capped[0].most} MHz")
    lazy = [one for one in found if one.governor != "performance" and one.preference != "performance"]
    if lazy:
        told = ", ".join(sorted({f"{one.governor} {one.preference}".strip() for one in lazy}))
        return warning(f"{_cpus(lazy, len(found))} ({told}) clock down between messages, so the first is slow")
    return ok("all CPUs keep their highest clock")


def _cpus(some: Sequence[CpuClock], of: int) -> str:
    if len(some) == of:
        return "all CPUs"
    return f"CPU {machine.named(str(one.cpu) for one in some)}" if len(some) < 3 else f"{len(some)} of {of} CPUs"
