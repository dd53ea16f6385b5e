"""Checks of containers, limits and the scheduler."""

from __future__ import annotations

from waywiser.look import machine, probes, rdma
from waywiser.look.finding import Finding, Unknown, absent, ok, problem, unknown, warning
from waywiser.look.root import Root
from waywiser.units import format_bytes

_ENOUGH_LOCKED = 1 << 30
_DOCKER_DEFAULT = 64 << 20
_SHARED_PER_RANK = 256 << 20


def namespaces(root: Root) -> Finding:
    """D18."""
    own = {name: root.link(f"/proc/self/ns/{name}") for name in ("pid", "ipc", "user", "net")}
    if None in own.values():
        return unknown("needs /proc/self/ns")
    if machine.in_container(root):
        return unknown("in a container; needs the namespaces of the other ranks: run doctor under their launcher")
    return ok("not in a container: ranks of this machine share their namespaces")


def cross_memory(root: Root) -> Finding:
    """D19."""
    scope = root.number("/proc/sys/kernel/yama/ptrace_scope")
    if scope is not None and (scope >= 3 or (scope == 2 and not _may_trace(root))):
        return problem(f"yama ptrace_scope is {scope}: no rank may read another rank's memory (CMA)")
    error = probes.cma_error(root)
    if not error:
        return ok("a process may read the memory of its sibling (process_vm_readv tried)")
    if scope == 1:
        return warning("yama ptrace_scope is 1: CMA works only with programs that allow it by prctl")
    return problem(f"process_vm_readv is refused ({error}): a seccomp filter or another user namespace")


def _may_trace(root: Root) -> bool:
    try:
        return machine.may_trace(root)
    except Unknown:
        return False


def shared_memory(root: Root) -> Finding:
    """D20."""
    space = root.space("/dev/shm")
    if space is None:
        return problem("/dev/shm is not there: no shared-memory transport works")
    total, free = space
    ranks = machine.local_size(root)
    said = f"/dev/shm: {format_bytes(free)} of {format_bytes(total)} free"
    if total <= _DOCKER_DEFAULT or free < _DOCKER_DEFAULT:
        return problem(f"{said}: too little for GPU libraries")
    if free < _SHARED_PER_RANK * ranks:
        return warning(f"{said} for {ranks} rank{'s' if ranks > 1 else ''}: NCCL and UCX may run out of it")
    return ok(said)


def locked_memory(root: Root) -> Finding:
    """D21."""
    limit = machine.memlock(root)
    where = "in this job" if machine.in_job(root) else "in this shell; a job may have another limit"
    if limit is None:
        return ok(f"no limit on locked memory {where}")
    said = f"at most {format_bytes(limit)} may be locked {where}"
    if not rdma.devices(root):
        return absent(f"no RDMA device that would lock memory ({said})")
    return problem(said) if limit < _ENOUGH_LOCKED else warning(said)
