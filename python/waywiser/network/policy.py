"""A policy as a value: which packets that come in at an interface are forwarded, dropped, copied, slowed down."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
PROTOCOLS = {"icmp": 1, "tcp": 6, "udp": 17, "sctp": 132, "icmpv6": 58}
WITH_PORTS = ("tcp", "udp", "sctp")


@dataclass(frozen=True)
class Match:
    """Which packets. What is None or empty is not looked at."""

    source: Network | None = None
    destination: Network | None = None
    protocol: str = ""
    source_ports: tuple[int, int] | None = None
    destination_ports: tuple[int, int] | None = None
    source_mac: str = ""
    destination_mac: str = ""
    vlan: int | None = None

    @property
    def families(self) -> list[int]:
        """IPv4, IPv6 or both; [0] if it looks at nothing that depends on it."""
        addresses = [network for network in (self.source, self.destination) if network]
        told = {"icmp": 4, "icmpv6": 6}.get(self.protocol)
        return [addresses[0].version] if addresses else [told] if told else [4, 6] if self.protocol else [0]


@dataclass(frozen=True)
class Rule:
    """What becomes of packets that come in `on` an interface. `end`: what becomes of them last.

    `ports`: of forward and redirect one, of balance several. `rate` in bit/s. `new`: with connection tracking, whether
    a packet may open a connection; None without.
    """

    line: int
    on: str
    match: Match = field(default_factory=Match)
    end: str = "pass"
    ports: tuple[str, ...] = ()
    mirror: str = ""
    rate: int = 0
    new: bool | None = None

    @property
    def takes(self) -> bool:
        """Whether packets may not arrive that arrive without the rule."""
        return self.end != "pass" or bool(self.rate) or self.new is not None


@dataclass(frozen=True)
class Policy:
    """The rules in order: the first one that fits a packet decides. `first`: tc's priority of the first one."""

    file: str
    rules: tuple[Rule, ...]
    first: int = 1000

    @property
    def interfaces(self) -> list[str]:
        """Where packets come in, each once, in order."""
        return list(dict.fromkeys(rule.on for rule in self.rules))
