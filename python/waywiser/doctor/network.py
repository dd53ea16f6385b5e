"""Checks of RDMA devices and network interfaces."""

from __future__ import annotations

import re

from waywiser.doctor.nccl_list import read_nccl_list
from waywiser.look import machine, pci, rdma
from waywiser.look.finding import Finding, Unknown, absent, ok, problem, unknown, warning
from waywiser.look.root import Root

_NO_RDMA = "no RDMA device"
_LOSS = ("out_of_sequence", "packet_seq_err", "local_ack_timeout_err", "rnr_nak_retry_err")
_TOLERATED = 1e-6  # lost packets per received packet
_LINK = ("link_downed", "link_error_recovery", "symbol_error", "port_rcv_errors", "local_link_integrity_errors")
_TOLERATED_LINK = 10  # errors of a link: a restart of the switch makes a few
_LITTLE = 0.3  # of what the card's PCIe link carries: a card is seldom built for so little

# PCI number of a card of NVIDIA -> its name, and Gb/s of a lane of InfiniBand.
_LANES = {
    0x1013: ("ConnectX-4", 25), 0x1017: ("ConnectX-5", 25), 0x1019: ("ConnectX-5 Ex", 25), 0x101B: ("ConnectX-6", 50),
    0x1021: ("ConnectX-7", 100), 0xA2DC: ("BlueField-3", 100), 0x1023: ("ConnectX-8", 200),
}  # fmt: skip


def nodes(root: Root) -> Finding:
    """D22."""
    devices = rdma.devices(root)
    if not devices:
        return absent(_NO_RDMA)
    missing, closed = [], []
    for name in devices:
        for verbs in root.names(f"{rdma.FOLDER}/{name}/device/infiniband_verbs"):
            node = f"/dev/infiniband/{verbs}"
            if not root.exists(node):
                missing.append(f"{node} of {name}")
            elif not root.may_open(node):
                closed.append(node)
    if missing:
        return problem(f"not there: {machine.named(missing)}")
    if closed:
        return problem(f"this user may not open {machine.named(closed)}")
    if not any(name.startswith("uverbs") for name in root.names("/dev/infiniband")):
        return problem("no /dev/infiniband/uverbs*, though there are RDMA devices")
    return ok(f"the device nodes of {machine.named(devices)} can be opened")


def ports(root: Root) -> Finding:
    """D23."""
    found = rdma.ports(root)
    if not found:
        return absent(_NO_RDMA)
    up = [port for port in found if port.state == "ACTIVE"]
    if not up:
        return problem(f"no port is active: {machine.named(f'{p.name} {p.state} {p.physical}' for p in found)}")
    infiniband = [port for port in up if port.layer == "InfiniBand"]  # Ethernet is made with 1, 2, 4 and 8 lanes
    narrow = [f"{port.name} 1X" for port in infiniband if port.lanes == 1 and port.rate >= 14]
    halved = [port for port in infiniband if port.lanes == 2]
    best = max(port.rate for port in up)
    slow = [f"{port.name} {port.rate:g} of {best:g} Gb/s" for port in up if 0 < port.rate < best]
    if narrow:
        return problem(f"active with fewer lanes: {machine.named(narrow)}")
    if slow:
        return warning(f"slower than the fastest port: {machine.named(slow)}")
    if older := _slower_than_card(root, up):
        return warning(f"an older cable or switch: {machine.named(older)}")
    down = [f"{port.name} {port.state}" for port in found if port.state != "ACTIVE"]
    if down:
        return warning(f"{len(up)} active, but {machine.named(down)}")
    said = machine.named(f"{port.name} {port.rate:g} Gb/s {port.layer}" for port in up)
    if lost := [port.name for port in halved if _widest(root, port) > 2]:
        return warning(f"2 of 4 lanes, by a cable for two ports or a fault: {machine.named(lost)}")
    if few := _far_below_slot(root, up):
        raise Unknown(f"{said}; needs the maximum of the card (mlxlink): {machine.named(few)}")
    return ok(said)


def _widest(root: Root, port: rdma.Port) -> int:
    """The most lanes that the port is made for: NDR200 and HDR100 have 2. Raises Unknown."""
    try:
        told = root.run("ibportstate", "-C", port.device, "-P", port.number, "-D", "0", port.number)
    except Unknown as error:
        raise Unknown(f"{port.name} {port.rate:g} Gb/s by 2 lanes, as NDR200 and HDR100 are: {error}") from error
    found = re.search(r"^LinkWidthSupported:\.*(.{1,80})$", told, re.MULTILINE)
    lanes = [int(number) for number in re.findall(r"\b(\d{1,2})X", found[1] if found else "")]
    if not lanes:
        raise Unknown(f"{port.name}: needs LinkWidthSupported of ibportstate")
    return max(lanes)


def _slower_than_card(root: Root, up: list[rdma.Port]) -> list[str]:
    """InfiniBand ports whose lanes carry less than those of the card's kind."""
    found = []
    for port in up:
        card = rdma.pci_device(root, port.device)
        number = root.number(f"{card.folder}/device") if card else None
        name, lane = _LANES.get(number or 0, ("", 0))
        if port.layer == "InfiniBand" and port.lanes and port.rate and 1.1 * port.rate / port.lanes < lane:
            found.append(f"{port.name} {port.rate / port.lanes:g} Gb/s a lane, {name} has {lane}")
    return found


def _far_below_slot(root: Root, up: list[rdma.Port]) -> list[str]:
    """Cards whose ports carry far less than their own PCIe link could."""
    rates: dict[pci.Device, float] = {}
    for port in up:
        if port.rate and (card := rdma.pci_device(root, port.device)):
            rates[card] = rates.get(card, 0.0) + port.rate
    found = []
    for card, rate in rates.items():
        link = pci.link(root, card.address)
        slot = link.most_speed * link.most_width
        if rate < _LITTLE * slot:
            found.append(f"{card.address} is made for PCIe of {slot:g} Gb/s, its ports carry {rate:g}")
    return found


def gids(root: Root) -> Finding:
    """D24."""
    found = rdma.active_roce_ports(root)
    if not found:
        return absent("no active RoCE port")
    lines = []
    for port in found:
        table = rdma.gids(root, port)
        good = [gid for gid in table if gid.routable]
        if not good:
            return problem(f"{port.name} has no routable RoCE v2 address")
        for name in ("UCX_IB_GID_INDEX", "NCCL_IB_GID_INDEX"):
            wanted = root.environment.get(name, "")
            if wanted.isdecimal() and int(wanted) not in [gid.index for gid in good]:
                return problem(
                    f"{name}={wanted} is no routable RoCE v2 address of {port.name}: {_listed(good)} would be"
                )
        lines.append(f"{port.name}: index {_listed(sorted(good, key=lambda gid: not gid.ipv4))}")
    return ok(f"routable RoCE v2 at {machine.named(lines)}")


def _listed(good: list[rdma.Gid]) -> str:
    return machine.named((str(gid.index) for gid in good), 6)


def mtu(root: Root) -> Finding:
    """D25."""
    active = [port for port in rdma.ports(root) if port.state == "ACTIVE"]
    if not active:
        return absent("no active RDMA port")
    small, told = [], []
    for port in active:
        if port.layer == "Ethernet":
            device = rdma.netdev(root, port)
            size = root.number(f"/sys/class/net/{device}/mtu") or 0
            told.append(f"{device} {size}")
            if size < 4200:
                small.append(f"{device} has MTU {size}, so {port.name} uses {_active(size)} of 4096")
    if small:
        return warning(machine.named(small))
    if told:
        return ok(f"MTU {machine.named(told)}: RDMA uses 4096")
    return _infiniband_mtu(root)


def _active(size: int) -> int:
    """The RDMA MTU that fits into a network MTU: a power of two, with 64 bytes for headers."""
    return max((mtu for mtu in (256, 512, 1024, 2048, 4096) if mtu + 64 <= size), default=256)


def _infiniband_mtu(root: Root) -> Finding:
    sizes = [int(text) for text in re.findall(r"active_mtu:\s+(\d{3,4})", root.run("ibv_devinfo"))]
    if not sizes:
        raise Unknown("needs active_mtu of ibv_devinfo")
    return ok("active MTU 4096") if min(sizes) >= 4096 else warning(f"active MTU {min(sizes)} of 4096")


def losses(root: Root) -> Finding:
    """D26."""
    found = rdma.ports(root)
    if not found:
        return absent(_NO_RDMA)
    bad, told = [], False
    for port in found:
        received = root.number(f"{port.folder}/counters/port_rcv_packets") or 0
        for name in _LOSS:
            count = root.number(f"{port.folder}/hw_counters/{name}")
            told = told or count is not None
            if count and count > _TOLERATED * received:
                bad.append(f"{port.name} {name} {count}")
        for name in _LINK:
            count = root.number(f"{port.folder}/counters/{name}") or 0
            if count > _TOLERATED_LINK:
                bad.append(f"{port.name} {name} {count}")
    if not told and not bad:
        return unknown("needs hw_counters of the ports, which this driver does not provide")
    return warning(f"since the driver was loaded: {machine.named(bad)}") if bad else ok("no significant packet loss")


def choice(root: Root) -> Finding:
    """D27."""
    nics = {name: device for name in rdma.devices(root) if (device := rdma.pci_device(root, name))}
    gpus = pci.gpus(root)
    if not gpus or not nics:
        return absent(machine.gpudirect_pairs(root) or "no RDMA device on PCI")
    for finding in (_listed_by_ucx(root, nics), _listed_by_nccl(root, nics)):
        if finding:
            return finding
    nearest = {gpu.address: _nearest(gpu, nics) for gpu in gpus}
    taken = {name for names in nearest.values() for name in names}
    crowded = [gpu for gpu, names in nearest.items() if list(nearest.values()).count(names) > 1 and len(names) == 1]
    if crowded and taken != set(nics):
        free = machine.named(sorted(set(nics) - taken))
        return warning(f"{machine.named(crowded)} have the same nearest NIC, while no GPU is nearest to {free}")
    return ok("; ".join(f"{gpu}: {machine.named(names)}" for gpu, names in nearest.items()))


def _listed_by_ucx(root: Root, nics: dict[str, pci.Device]) -> Finding | None:
    """The error in a list of NICs for UCX in the environment, if any."""
    text = root.environment.get("UCX_NET_DEVICES", "")
    names = [part.split(":")[0] for part in text.split(",") if part and not text.startswith("^")]
    strange = [name for name in names if re.fullmatch(r"mlx\d+_\d+|bnxt_re\d+|irdma\d+", name) and name not in nics]
    if strange:
        return problem(f"UCX_NET_DEVICES names {machine.named(strange)}, which does not exist here")
    return _two_of_a_card(f"UCX_NET_DEVICES={text}", [name for name in names if name in nics], nics)


def _listed_by_nccl(root: Root, nics: dict[str, pci.Device]) -> Finding | None:
    """The same for NCCL."""
    text = root.environment.get("NCCL_IB_HCA", "")
    if not text:
        return None
    wanted = read_nccl_list(text)
    known = {one for name in nics for one in wanted.named(name)}
    strange = [name for name, _ in wanted.entries if name not in known]
    if strange and not wanted.excludes:
        return problem(f"NCCL_IB_HCA names {machine.named(strange)}, which does not exist here")
    taken = [
        port.device for port in rdma.ports(root) if port.device in nics and wanted.takes(port.device, int(port.number))
    ]
    if not taken:
        return warning(f"NCCL_IB_HCA={text} leaves NCCL no NIC: it uses sockets")
    return None if wanted.excludes else _two_of_a_card(f"NCCL_IB_HCA={text}", taken, nics)


def _two_of_a_card(told: str, names: list[str], nics: dict[str, pci.Device]) -> Finding | None:
    slots = [nics[name].address.rsplit(".", 1)[0] for name in dict.fromkeys(names)]
    if len(slots) > len(set(slots)):
        return warning(f"{told}: two ports of one card are listed as rails, but they share its PCIe link")
    return None


def _nearest(gpu: pci.Device, nics: dict[str, pci.Device]) -> list[str]:
    """The NICs that share the most bridges with a GPU."""
    shared = {name: len(set(gpu.above) & set(nic.above)) for name, nic in nics.items()}
    return sorted(name for name, count in shared.items() if count == max(shared.values()))


def _unknown_state(root: Root) -> list[str]:
    """Interfaces that may work though their driver does not say that they are up: the loopback device, tunnels."""
    names = root.names("/sys/class/net")
    return [name for name in names if root.text(f"/sys/class/net/{name}/operstate") == "unknown"]


def interfaces(root: Root) -> Finding:
    """D44."""
    up = [name for name in root.names("/sys/class/net") if root.text(f"/sys/class/net/{name}/operstate") == "up"]
    if not up:
        return absent("no network interface is up")
    for name in up:
        if root.number(f"/sys/class/net/{name}/type") == 32 and root.text(f"/sys/class/net/{name}/mode") == "datagram":
            size = root.number(f"/sys/class/net/{name}/mtu") or 0
            if size < 4092:
                return warning(f"{name}: IPoIB in datagram mode with MTU {size}")
    text = root.environment.get("NCCL_SOCKET_IFNAME", "")
    wanted = read_nccl_list(text)
    if text and not any(map(wanted.takes, [*up, *_unknown_state(root)])):
        return problem(f"NCCL_SOCKET_IFNAME={text}, but only {machine.named(up)} is up")
    bridges = [name for name in up if re.match(r"docker|virbr|veth|cni|br-", name) and (not text or wanted.takes(name))]
    if bridges:
        return warning(f"{machine.named(bridges)} is up: a program may choose it for its sockets")
    if len(up) > 1 and root.text("/proc/sys/net/ipv4/conf/all/rp_filter") == "1":
        return warning(
            f"{len(up)} interfaces and a strict rp_filter: packets that arrive by another interface are dropped"
        )
    return ok(f"{machine.named(up)} up")
