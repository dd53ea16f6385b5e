"""Fall-backs between machines: a network without RDMA, a slow interface, reductions that the switches do not make."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from waywiser.doctor.fast_paths import switched_off
from waywiser.look import in_network, machine, networks, rdma
from waywiser.look.finding import Unknown
from waywiser.look.nccl_log import HOW_TO_LOG, counted_by_collnet, why_no_collnet
from waywiser.monitor.counters import RDMA
from waywiser.running.evidence import NOTICED, Evidence, Flow
from waywiser.running.settings import deciding, said
from waywiser.running.users import NCCL, OPEN_MPI, by_ucx, has
from waywiser.running.within import log_files, logged_ways
from waywiser.units import format_bytes

# What ranks send while they meet grows with their number: so much is data.
_MUCH, _MUCH_A_SECOND = 64 << 20, float(1 << 20)
_LAST_OF_SERVICES = 1023  # port
_CHOOSE_INTERFACE = (
    "NCCL_SOCKET_IFNAME", "UCX_NET_DEVICES", "OMPI_MCA_btl_tcp_if_include", "OMPI_MCA_btl_tcp_if_exclude",
    "WAYWISER_UCX_NET_DEVICES",
)  # fmt: skip
_FASTER = 2.0


def _away(seen: Evidence) -> list[Flow]:
    """The connections to other machines that carry data and may lead to ranks: those to ports of services (files,
    HTTPS) do not."""
    flows = [one for one in seen.flows if not one.here and one.port > _LAST_OF_SERVICES]
    return flows if _total(flows) >= _MUCH or _is_moving(flows) else []


def _total(flows: Sequence[Flow]) -> int:
    return sum((one.sent or 0) + (one.received or 0) for one in flows)


def _is_moving(flows: Sequence[Flow]) -> bool:
    return sum(one.rate for one in flows) >= _MUCH_A_SECOND


def no_rdma(seen: Evidence) -> str:
    """TCP between machines, where this one has an RDMA port that is up. Raises Unknown."""
    flows = _away(seen)
    ports = [one for one in rdma.ports(seen.root) if one.state == "ACTIVE"]
    if not flows or not ports or seen.moved.get(RDMA, 0) >= NOTICED:
        return ""
    by = machine.named(dict.fromkeys(one.interface for one in flows if one.interface))
    why = "; ".join(dict.fromkeys(_why_no_rdma(seen)))
    told = f"{format_bytes(_total(flows))} by TCP over {by} to other machines, nothing by {ports[0].name}, which is up"
    if not why and not _is_moving(flows):
        raise Unknown(f"{told}: whether it went to ranks; --seconds 30 would show more")
    return f"{told}: {why or 'no setting that is known says why'}"


def _why_no_rdma(seen: Evidence) -> Iterator[str]:
    found = deciding(seen)
    yield from (line for line in switched_off(seen.root, found) if "RDMA" in line and "GPUDirect" not in line)
    if found.get("WAYWISER_ENCRYPT", ("0", ""))[0] == "1":
        yield f"{said(found, 'WAYWISER_ENCRYPT')}: what is encrypted goes by TCP"
    if not seen.devices("/dev/infiniband/uverbs"):
        yield "no rank has opened a device of /dev/infiniband"
    if has(seen, OPEN_MPI) and not by_ucx(seen, found) and "OMPI_MCA_pml" not in found:
        yield "Open MPI took its own TCP, not UCX"


def slow_interface(seen: Evidence) -> str:
    """TCP between machines over an interface, where another one that is up is faster. Raises Unknown."""
    used = {one.interface for one in _away(seen) if one.interface} - {"lo"}
    up = {name for name, _ in networks.networks(seen.root)} & set(seen.root.names("/sys/class/net"))
    speeds = {name: _speed(seen, name) for name in up | used}
    for name in sorted(used):
        others = {other: speed for other, speed in speeds.items() if other != name and speed}
        if not others:
            continue
        best = max(others, key=lambda other: others[other])
        mine = speeds[name]
        if not mine:
            raise Unknown(f"needs the speed of {name}, which carries the job's TCP: {best} has {others[best]:,} Mb/s")
        if others[best] >= _FASTER * mine:
            found = deciding(seen)
            why = machine.named(said(found, one) for one in _CHOOSE_INTERFACE if one in found)
            told = f"{name} ({mine:,} Mb/s), where {best} is up ({others[best]:,} Mb/s)"
            return f"TCP to other machines goes over {told}: {why or 'the routes say so, and no setting'}"
    return ""


def _speed(seen: Evidence, name: str) -> int:
    """Mb/s; 0 if the interface does not say."""
    try:
        return max(seen.root.number(f"/sys/class/net/{name}/speed") or 0, 0)
    except Unknown:
        return 0


def no_collnet(seen: Evidence) -> str:
    """Reductions in the switches that are asked for and not made. Raises Unknown."""
    found = deciding(seen)
    if not has(seen, NCCL) or found.get("NCCL_COLLNET_ENABLE", ("0", ""))[0].strip() in ("", "0"):
        return ""
    asked = said(found, "NCCL_COLLNET_ENABLE")
    plug_ins = list(seen.loaded(r"libnccl-net[-\w]*\.so.*"))
    if not any(in_network.offers_collnet(seen.root, file) for file in plug_ins):
        return f"{asked}, but no rank has loaded a plug-in with CollNet: NCCL takes its rings"
    ways = logged_ways(seen)
    if not ways:
        raise Unknown(f"{asked}, and a plug-in with CollNet is loaded: that it is taken only a log says: {HOW_TO_LOG}")
    if any(way.startswith("COLLNET") for way in ways):
        counted = [counted_by_collnet(seen.root, file) for file in log_files(seen)]
        every = sum(count for _, count in counted)
        none = f"{asked}, and none of {every} all-reduces ran by CollNet: NCCL takes others for their sizes"
        return none if every and not any(taken for taken, _ in counted) else ""
    why = next((text for file in log_files(seen) if (text := why_no_collnet(seen.root, file))), "NCCL took its rings")
    return f"{asked}, and NCCL's log has no connection via COLLNET: {why}"
