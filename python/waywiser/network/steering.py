"""All that decides who may talk to whom on one machine, as one value."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from waywiser.look.finding import Unknown
from waywiser.network.asking import Asked
from waywiser.network.filters import Filter, read_filters
from waywiser.network.interfaces import Card, Interface, packets, read_cards, read_interfaces, read_links, read_ports
from waywiser.network.open_vswitch import OpenVSwitch, read_open_vswitch

_AGAIN = " # again"  # the second look at the counters
_CONNECTIONS = "/proc/sys/net/netfilter/nf_conntrack_"


@dataclass(frozen=True)
class Steering:
    """`connections`: entries of the connection tracker and their limit; None if it is not loaded or not known.

    `unknown`: (subject, reason) of all that could not be looked at. `seconds`: between two looks at the counters.
    """

    host: str
    kernel: str
    seconds: float
    cards: tuple[Card, ...]
    interfaces: tuple[Interface, ...]
    filters: tuple[Filter, ...]
    open_vswitch: OpenVSwitch
    bridges: tuple[tuple[str, tuple[str, ...]], ...]
    connections: tuple[int, int] | None
    unknown: tuple[tuple[str, str], ...]

    def card_of(self, interface: Interface) -> Card | None:
        """The card of an interface of a physical function or representor."""
        return next((card for card in self.cards if card.address == interface.address), None)

    def named(self, name: str) -> Interface | None:
        """The interface of that name."""
        return next((one for one in self.interfaces if one.name == name), None)

    def filters_of(self, name: str) -> list[Filter]:
        """The rules of one interface."""
        return [one for one in self.filters if one.interface == name]


def read_rules(asked: Asked, one: Interface, direction: str, mark: str = "") -> list[Filter]:
    """The rules of an interface with their counters. Raises Unknown, ValueError."""
    where = ("block", str(one.block)) if one.block and direction == "ingress" else ("dev", one.name, direction)
    return read_filters(asked.json("tc", "-s", "-j", "filter", "show", *where, mark=mark), one.name, direction)


class _Look:
    """One look at a machine; what fails is noted with its reason."""

    def __init__(self, asked: Asked) -> None:
        self.asked = asked
        self.unknown: list[tuple[str, str]] = []

    def note(self, subject: str, why: object) -> None:
        if (subject, str(why)) not in self.unknown:
            self.unknown.append((subject, str(why)))

    def qdiscs(self) -> dict[str, tuple[str, int]]:
        """Interface -> the kind of its ingress qdisc and its shared block (0: none)."""
        try:
            rows = self.asked.json("tc", "-s", "-j", "qdisc", "show")
        except Unknown as error:
            self.note("rules", error)
            return {}
        found = {}
        for row in rows if isinstance(rows, list) else []:
            if isinstance(row, dict) and row.get("kind") in ("ingress", "clsact"):
                block = row.get("ingress_block")
                found[str(row.get("dev"))] = (str(row["kind"]), block if isinstance(block, int) else 0)
        return found

    def filters(self, one: Interface, mark: str = "") -> list[Filter]:
        found: list[Filter] = []
        for direction in ("ingress", "egress") if one.qdisc == "clsact" else ("ingress",) if one.qdisc else ():
            try:
                found += read_rules(self.asked, one, direction, mark)
            except (Unknown, ValueError) as error:
                self.note(f"rules of {one.name}", error)
        return found

    def connections(self) -> tuple[int, int] | None:
        try:
            texts = [self.asked.text(_CONNECTIONS + word) for word in ("count", "max")]
        except Unknown as error:
            self.note("connection tracking", error)
            return None
        numbers = [int(text) for text in texts if text is not None and text.isdecimal()]
        return (numbers[0], numbers[1]) if len(numbers) == 2 else None


def look(asked: Asked, seconds: float = 1.0, pause: Callable[[float], None] = time.sleep) -> Steering:
    """Looks at a machine; changes nothing. If a rule says that it is in hardware, looks at the counters twice."""
    looking = _Look(asked)
    try:
        links = read_links(asked)
    except Unknown as error:
        links = []
        looking.note("interfaces", error)
    try:
        ports = read_ports(asked)
    except Unknown as error:
        ports = {}
        looking.note("ports of the cards", error)
    interfaces = list(read_interfaces(asked, links, ports, looking.qdiscs()))
    for one in interfaces:
        if one.offload == "unknown":
            looking.note(f"hw-tc-offload of {one.name}", _why_no_offload(asked, one.name))
    cards = read_cards(asked, interfaces, ports)
    for card in cards:
        if card.mode == "unknown":
            looking.note(f"eswitch of {card.address}", card.why)
    filters = [rule for one in interfaces for rule in looking.filters(one)]
    if any(rule.hardware for rule in filters):
        if asked.live:
            pause(seconds)
        interfaces = _moved(asked, interfaces)
        filters = [rule for one in interfaces for rule in looking.filters(one, _AGAIN)] or filters
    datapath = any(row["ifname"] == "ovs-system" for row in links)
    switch = read_open_vswitch(asked, datapath)
    if switch.there is None:
        looking.note("Open vSwitch", switch.why)
    masters = sorted({str(row["master"]) for row in links if row.get("master")})
    bridges = tuple((name, tuple(str(r["ifname"]) for r in links if r.get("master") == name)) for name in masters)
    host = asked.text("/proc/sys/kernel/hostname") or ""
    kernel = asked.text("/proc/sys/kernel/osrelease") or ""
    return Steering(
        host,
        kernel,
        seconds,
        tuple(cards),
        tuple(interfaces),
        tuple(filters),
        switch,
        bridges,
        looking.connections(),
        tuple(looking.unknown),
    )


def _why_no_offload(asked: Asked, name: str) -> str:
    try:
        asked.said("ethtool", "-k", name)
    except Unknown as error:
        return str(error)
    return "ethtool does not name it"


def _moved(asked: Asked, interfaces: list[Interface]) -> list[Interface]:
    """With the packets that moved since the first look."""
    try:
        later = {row["ifname"]: packets(row) for row in read_links(asked, _AGAIN)}
    except Unknown:
        return interfaces
    return [
        replace(one, moved=max(0, sum(later[one.name]) - one.received - one.sent)) if one.name in later else one
        for one in interfaces
    ]
