"""RDMA devices and their ports below /sys/class/infiniband."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass

from waywiser.look import pci
from waywiser.look.finding import Unknown
from waywiser.look.root import Root

FOLDER = "/sys/class/infiniband"
_MOST_GIDS = 256


@dataclass(frozen=True)
class Port:
    """One port: `state` like "ACTIVE", `rate` in Gb/s (0: not reported), `layer` "InfiniBand" or "Ethernet"."""

    device: str
    number: str
    state: str
    physical: str
    rate: float
    lanes: int
    layer: str

    @property
    def name(self) -> str:
        """mlx5_0:1, as UCX names it."""
        return f"{self.device}:{self.number}"

    @property
    def folder(self) -> str:
        """Its folder below /sys."""
        return f"{FOLDER}/{self.device}/ports/{self.number}"


def devices(root: Root) -> list[str]:
    """Names of the RDMA devices."""
    return root.names(FOLDER)


def pci_device(root: Root, name: str) -> pci.Device | None:
    """The PCI device of an RDMA device; None for a software device."""
    address = root.real(f"{FOLDER}/{name}/device").rsplit("/", 1)[-1]
    return pci.device(root, address) if root.exists(f"/sys/bus/pci/devices/{address}") else None


def ports(root: Root) -> list[Port]:
    """All ports of all devices."""
    found = []
    for name in devices(root):
        for number in root.names(f"{FOLDER}/{name}/ports"):
            folder = f"{FOLDER}/{name}/ports/{number}"
            rate = re.match(r"\s*(\d{1,5}(?:\.\d)?) Gb/sec(?: \((\d{1,2})X)?", root.text(f"{folder}/rate") or "")
            found.append(
                Port(
                    name,
                    number,
                    _after_colon(root.text(f"{folder}/state")),
                    _after_colon(root.text(f"{folder}/phys_state")),
                    float(rate[1]) if rate else 0.0,
                    int(rate[2] or 0) if rate else 0,
                    root.text(f"{folder}/link_layer") or "",
                )
            )
    return found


def _after_colon(text: str | None) -> str:
    return (text or "").partition(":")[2].strip()


def active_roce_ports(root: Root) -> list[Port]:
    """The Ethernet ports that are up."""
    return [port for port in ports(root) if port.layer == "Ethernet" and port.state == "ACTIVE"]


@dataclass(frozen=True)
class Gid:
    """An entry of a port's table that is in use; `type` is "RoCE v2", "IB/RoCE v1", ..."""

    index: int
    address: ipaddress.IPv6Address
    type: str

    @property
    def routable(self) -> bool:
        """Whether it is RoCE v2 with an address that is not link-local."""
        return self.type == "RoCE v2" and not self.address.is_link_local

    @property
    def ipv4(self) -> bool:
        """Whether it represents an IPv4 address."""
        return self.address.ipv4_mapped is not None


def gids(root: Root, port: Port) -> list[Gid]:
    """The entries of a port's GID table that are not empty."""
    found = []
    for name in root.names(f"{port.folder}/gids")[:_MOST_GIDS]:
        text = root.text(f"{port.folder}/gids/{name}") or ""
        if not name.isdecimal():
            continue
        try:
            address = ipaddress.IPv6Address(text)
        except ValueError:
            continue
        if int(address):
            found.append(Gid(int(name), address, root.text(f"{port.folder}/gid_attrs/types/{name}") or ""))
    return sorted(found, key=lambda gid: gid.index)


def netdev(root: Root, port: Port) -> str:
    """The network interface of a port. Raises Unknown if the kernel does not report it."""
    for index in root.names(f"{port.folder}/gid_attrs/ndevs")[:_MOST_GIDS]:
        name = root.text(f"{port.folder}/gid_attrs/ndevs/{index}")
        if name:
            return name
    names = root.names(f"{FOLDER}/{port.device}/device/net")
    if names:
        return names[0]
    raise Unknown(f"needs the network interface of {port.name}, which the kernel does not report")
