"""Fall-backs between ranks of one machine: sockets in place of shared memory, two copies in place of one, a network in
place of NVLink."""

from __future__ import annotations

from collections.abc import Iterator

from waywiser.doctor import open_mpi
from waywiser.doctor.fast_paths import switched_off
from waywiser.look import machine, nccl_log
from waywiser.look.finding import Unknown
from waywiser.monitor.counters import NVLINK, PCIE
from waywiser.running.evidence import NOTICED, Evidence
from waywiser.running.settings import allows, deciding, leaves_out_cma, said, settings_of
from waywiser.running.users import NCCL, OPEN_MPI, OURS, UCX, by_ucx, has, libraries
from waywiser.units import format_bytes

_SHARED = ("sm", "shm", "mm", "posix", "sysv", "xpmem", "cma", "knem")
_SINGLE_COPY = ("OMPI_MCA_btl_vader_single_copy_mechanism", "OMPI_MCA_btl_sm_single_copy_mechanism")
_MUCH = 64 << 20  # bytes by PCIe while NVLink stands still


def sockets(seen: Evidence) -> str:
    """TCP between ranks of this machine."""
    flows = [one for one in seen.flows if one.peer is not None and one.is_noticed]
    if not flows or not any(libraries(rank.process) for rank in seen.job.ranks):
        return ""
    pairs = sorted({(min(one.rank, one.peer), max(one.rank, one.peer)) for one in flows if one.peer is not None})
    told = machine.named(f"{a}-{b}" for a, b in pairs)
    by = machine.named(dict.fromkeys(one.interface or "an unknown interface" for one in flows))
    many = format_bytes(sum(one.sent or 0 for one in flows))
    why = "; ".join(dict.fromkeys(_why_sockets(seen)))
    if not why and has(seen, "PyTorch"):
        why = "no setting says why; Gloo, if the program uses it, has nothing else"
    return f"{many} by TCP over {by} between ranks {told} of this machine: {why or 'no setting that is known says why'}"


def _why_sockets(seen: Evidence) -> Iterator[str]:
    found = deciding(seen)
    ucx = by_ucx(seen, found)
    trap = open_mpi.trap(seen.root, found) if has(seen, OPEN_MPI) and not ucx else None
    if trap and "shared memory" in trap.text:
        yield f"{said(found, 'OMPI_MCA_btl')} leaves out shared memory"
    for name in ("WAYWISER_UCX_TLS", "UCX_TLS") if ucx or has(seen, OURS) else ():
        if name in found and not allows(found[name][0], *_SHARED):
            yield f"{said(found, name)} leaves out shared memory"
    if has(seen, NCCL) and found.get("NCCL_SHM_DISABLE", ("", ""))[0].strip("0 ") == "1":
        yield f"{said(found, 'NCCL_SHM_DISABLE')} forbids NCCL's shared memory"
    machines = {settings_of(seen, rank.number).get("WAYWISER_MACHINE", ("", ""))[0] for rank in seen.job.ranks}
    if len(machines) > 1:
        yield f"WAYWISER_MACHINE differs ({machine.named(sorted(machines))}): ranks count as ranks of several machines"
    yield from _apart(seen, ("ipc", "pid", "user", "mnt"))


def _apart(seen: Evidence, kinds: tuple[str, ...]) -> Iterator[str]:
    """Kinds of namespaces that ranks do not share."""
    for kind in kinds:
        if len({rank.process.namespaces.get(kind, "") for rank in seen.job.ranks} - {""}) > 1:
            yield f"the ranks are in different {kind} namespaces"


def two_copies(seen: Evidence) -> str:
    """Long messages within this machine that are copied twice: no process may, or shall, read another."""
    if not seen.shared or any("xpmem" in one for one in seen.devices("/dev/xpmem")):
        return ""
    found = deciding(seen)
    ucx = by_ucx(seen, found)
    why = []
    if has(seen, OPEN_MPI) and not ucx:
        if "OMPI_MCA_smsc" in found and leaves_out_cma(found["OMPI_MCA_smsc"][0], ()):
            why.append(f"{said(found, 'OMPI_MCA_smsc')} leaves out CMA")
        why += [f"{said(found, name)} leaves out CMA" for name in _SINGLE_COPY if found.get(name, ("",))[0] == "none"]
    if ucx:
        for name in ("WAYWISER_UCX_TLS", "UCX_TLS"):
            text = found.get(name, ("all", ""))[0]
            if allows(text, *_SHARED) and leaves_out_cma(text, ("sm", "shm")):
                why.append(f"{said(found, name)} leaves out CMA")
    if has(seen, OPEN_MPI) or has(seen, UCX):
        why += _forbidden(seen)
    return f"long messages within this machine are copied twice: {'; '.join(why)}" if why else ""


def _forbidden(seen: Evidence) -> Iterator[str]:
    """Why the kernel refuses process_vm_readv between ranks."""
    scope = seen.root.number("/proc/sys/kernel/yama/ptrace_scope")
    users = {one.split()[1] for rank in seen.job.ranks if (one := _line(seen, rank.process.number, "Uid"))}
    capable = [int((_line(seen, rank.process.number, "CapEff") or "x 0").split()[1], 16) for rank in seen.job.ranks]
    if scope is not None and scope >= 2 and not all(mask >> 19 & 1 for mask in capable):
        yield f"kernel.yama.ptrace_scope={scope} forbids CMA"
    if len(users) > 1:
        yield f"the ranks belong to users {machine.named(sorted(users))}, so the kernel refuses CMA"
    for text in _apart(seen, ("user",)):
        yield f"{text}, so the kernel refuses CMA"


def _line(seen: Evidence, process: int, name: str) -> str:
    lines = (seen.root.text(f"/proc/{process}/status") or "").splitlines()
    return next((line for line in lines if line.startswith(f"{name}:")), "")


def mailbox_off(seen: Evidence) -> str:
    """A group whose ranks leave its own rings and copies to UCX."""
    found = deciding(seen)
    sent = sum(count for rank in seen.ours for name, count in rank.sent.items() if name.startswith("UCX"))
    if found.get("WAYWISER_MAILBOX", ("", ""))[0] not in ("off", "short") or sent < NOTICED:
        return ""
    return f"{format_bytes(sent)} by UCX between ranks of this machine: {said(found, 'WAYWISER_MAILBOX')}"


def no_nvlink(seen: Evidence) -> str:
    """GPUs of this machine that NVLink connects, and that talk over PCIe, the host or a network."""
    if len(seen.job.ranks) < 2 or not seen.devices("/dev/nvidia"):
        return ""
    why = "; ".join(dict.fromkeys(_why_no_peers(seen)))
    logged = _in_log(seen)
    if logged:
        return f"{logged}: {why or 'no setting that is known says why'}"
    has_links = any(kind == NVLINK for kind, _, _ in seen.sample.bytes)
    still = has_links and seen.moved.get(NVLINK, 0) < NOTICED and seen.moved.get(PCIE, 0) >= _MUCH
    if still:
        told = f"{format_bytes(seen.moved[PCIE])} by the GPUs' PCIe and nothing by NVLink in {seen.seconds:g} s"
        if not why:
            raise Unknown(f"{told}: copies between host and GPU, or no peer access; --seconds 30 would show more")
        return f"{told}: {why}"
    if has(seen, NCCL) and why and any(name.startswith("nccl-") for name in seen.shared):
        return f"NCCL's ranks share host memory: {why}"
    return ""


def _why_no_peers(seen: Evidence) -> Iterator[str]:
    found = deciding(seen)
    yield from (line for line in switched_off(seen.root, found) if "peer access" in line)
    if found.get("WAYWISER_PEER_ACCESS", ("", ""))[0] == "off":
        yield f"{said(found, 'WAYWISER_PEER_ACCESS')} switches off peer access"


def _in_log(seen: Evidence) -> str:
    """What NCCL's log says of ranks of this machine alone, if it is not peer access. Raises Unknown without a log."""
    if not has(seen, NCCL) or seen.job.size > len(seen.job.ranks):
        return ""
    ways = logged_ways(seen)
    slow = {way: count for way, count in ways.items() if way.startswith(("SHM", "NET"))}
    if not slow or any(way.startswith(("P2P", "NVLS")) for way in ways):
        return ""
    told = machine.named(f"{count} connections via {way}" for way, count in slow.items())
    return f"NCCL's log has {told}, none via P2P"


def log_files(seen: Evidence) -> list[str]:
    """The files that NCCL writes in the ranks here, each once."""
    host = (seen.root.text("/proc/sys/kernel/hostname") or "").partition(".")[0]
    files = []
    for rank in seen.job.ranks:
        pattern = settings_of(seen, rank.number).get("NCCL_DEBUG_FILE", ("", ""))[0]
        files.append(nccl_log.file_of(pattern, host, rank.process.number))
    return list(dict.fromkeys(file for file in files if file))


def logged_ways(seen: Evidence) -> dict[str, int]:
    """Connections by transport in the logs of all ranks here; nothing if NCCL writes none."""
    ways: dict[str, int] = {}
    for file in log_files(seen):
        try:
            found = nccl_log.transports(seen.root, file)
        except Unknown:
            found = None
        for way, count in (found or {}).items():
            ways[way] = ways.get(way, 0) + count
    return ways
