"""Interfaces and cards: physical functions, virtual functions, representors, and the eswitch of each card."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from waywiser.json_fields import clean
from waywiser.look.finding import Unknown
from waywiser.network.asking import Asked

PHYSICAL, VIRTUAL, REPRESENTOR, OTHER = "physical function", "virtual function", "representor", "other"
UNKNOWN = "unknown"
# Cards with processors of their own, as a host sees them.
_WITH_PROCESSORS = {
    f"0x15b3:{device}": f"BlueField{number}"
    for device, number in (("0xa2d2", ""), ("0xa2d6", "-2"), ("0xa2dc", "-3"), ("0xa2df", "-4"))
}
_PCI = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
_OF_A_FUNCTION = re.compile(r"(c\d+)?pf\d+(vf\d+|sf\d+)?")
LINKS = ("ip", "-s", "-j", "-d", "link", "show")
_MOST = 10_000


@dataclass(frozen=True)
class Interface:
    """One interface. `offload` is ethtool's hw-tc-offload ("on", "off", "off [fixed]") or "unknown".

    `address`: of its card's PCI function. `qdisc`: "clsact", "ingress" or nothing. `received`, `sent`: packets.
    """

    name: str
    role: str
    address: str
    driver: str
    port: str
    switch: str
    up: bool
    master: str
    kind: str
    offload: str
    qdisc: str
    block: int
    received: int
    sent: int
    moved: int | None = None


@dataclass(frozen=True)
class Card:
    """A physical function. `mode`: "switchdev", "legacy", "none" or "unknown"; `why` if it is not known."""

    address: str
    driver: str
    processors: str  # "BlueField-3" if the card has its own
    mode: str
    why: str
    owner: str
    virtual_functions: int


def read_links(asked: Asked, mark: str = "") -> list[dict[str, Any]]:
    """The interfaces as ip prints them. Raises Unknown."""
    value = asked.json(*LINKS, mark=mark)
    rows = value if isinstance(value, list) else []
    return [row for row in rows[:_MOST] if isinstance(row, dict) and isinstance(row.get("ifname"), str)]


def packets(link: dict[str, Any]) -> tuple[int, int]:
    """Received and sent packets."""
    counters = link.get("stats64")
    found = []
    for side in ("rx", "tx"):
        part = counters.get(side) if isinstance(counters, dict) else None
        number = part.get("packets") if isinstance(part, dict) else None
        found.append(number if isinstance(number, int) else 0)
    return found[0], found[1]


def read_ports(asked: Asked) -> dict[str, dict[str, Any]]:
    """What devlink says of the ports, by interface. Raises Unknown."""
    value = asked.json("devlink", "-j", "port", "show")
    ports = value.get("port") if isinstance(value, dict) else None
    rows = ports.values() if isinstance(ports, dict) else []
    return {str(row["netdev"]): row for row in rows if isinstance(row, dict) and "netdev" in row}


def read_interfaces(
    asked: Asked, links: list[dict[str, Any]], ports: dict[str, dict[str, Any]], qdiscs: dict[str, tuple[str, int]]
) -> Iterator[Interface]:
    """Interfaces of cards, representors, and those that have rules."""
    for link in links:
        name = clean(link["ifname"], 32)
        address = asked.link(f"/sys/class/net/{name}/device")
        address = address if _PCI.fullmatch(address) else ""
        switch, qdisc = clean(str(link.get("phys_switch_id") or ""), 64), qdiscs.get(name, ("", 0))
        if not (address or switch or qdisc[0]):
            continue
        port, kind = ports.get(name, {}), _kind(link)
        label = clean(str(link.get("phys_port_name") or port.get("flavour") or ""), 32)
        flags = link.get("flags")
        yield Interface(
            name,
            _role(asked, address, switch, label, str(port.get("flavour") or "")),
            address,
            asked.link(f"/sys/bus/pci/devices/{address}/driver") if address else kind,
            label,
            switch,
            "UP" in flags if isinstance(flags, list) else False,
            clean(str(link.get("master") or ""), 32),
            kind,
            _offload(asked, name),
            *qdisc,
            *packets(link),
        )


def _kind(link: dict[str, Any]) -> str:
    info = link.get("linkinfo")
    return clean(str(info.get("info_kind") or ""), 32) if isinstance(info, dict) else ""


def _role(asked: Asked, address: str, switch: str, label: str, flavour: str) -> str:
    if flavour in ("pcipf", "pcivf", "pcisf") or (switch and _OF_A_FUNCTION.fullmatch(label)):
        return REPRESENTOR
    if not address:
        return OTHER
    return VIRTUAL if asked.link(f"/sys/bus/pci/devices/{address}/physfn") else PHYSICAL


def _offload(asked: Asked, name: str) -> str:
    try:
        found = re.search(r"^hw-tc-offload: (on|off)( \[fixed\])?", asked.said("ethtool", "-k", name), re.MULTILINE)
    except Unknown:
        return UNKNOWN
    return found[1] + (found[2] or "") if found else UNKNOWN


def read_cards(asked: Asked, interfaces: list[Interface], ports: dict[str, dict[str, Any]]) -> list[Card]:
    """The cards of the interfaces, with who decides over the eswitch of each."""
    drivers = {one.address: one.driver for one in interfaces if one.role in (PHYSICAL, REPRESENTOR) and one.address}
    on_card = any(row.get("external") is True for row in ports.values())
    found = []
    for address, driver in sorted(drivers.items()):
        ids = [asked.text(f"/sys/bus/pci/devices/{address}/{part}") or "" for part in ("vendor", "device")]
        processors = _WITH_PROCESSORS.get(":".join(ids), "")
        number = asked.text(f"/sys/bus/pci/devices/{address}/sriov_numvfs") or ""
        mode, why = _mode(asked, address)
        owner = UNKNOWN
        if mode in ("switchdev", "legacy"):
            owner = "this system, on the card's own processors" if on_card else "this system"
        elif processors and asked.privileged and "failed" in why:
            owner = "the card's own processors"
        elif mode == "none":
            owner = "nobody"
        found.append(Card(address, driver, processors, mode, why, owner, int(number) if number.isdecimal() else 0))
    return found


def _mode(asked: Asked, address: str) -> tuple[str, str]:
    try:
        known = asked.json("devlink", "-j", "dev", "show")
        devices = known.get("dev") if isinstance(known, dict) else None
        if not isinstance(devices, dict) or f"pci/{address}" not in devices:
            return "none", "its driver has no devlink device"
        value = asked.json("devlink", "-j", "dev", "eswitch", "show", f"pci/{address}")
        row = next(iter(value["dev"].values()))
        return clean(str(row["mode"]), 32), ""
    except Unknown as error:
        if "not supported" in str(error).lower():
            return "none", str(error)
        return UNKNOWN, str(
            error
        ) if asked.privileged else f"{error} (devlink tells the mode only to root of the machine)"
    except (LookupError, TypeError, AttributeError, StopIteration):
        return UNKNOWN, "devlink printed no mode"
