"""TCP connections of other processes: who talks to whom, by which interface, and what the kernel has counted."""

from __future__ import annotations

import ipaddress
import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass

from waywiser.look.finding import Unknown
from waywiser.look.probes import probe
from waywiser.look.root import Root

_LINE = re.compile(
    r"\s*\d+: ([0-9A-F]{8,32}):([0-9A-F]{4}) ([0-9A-F]{8,32}):([0-9A-F]{4}) 01 \S+ \S+ \S+\s+\d+\s+\d+ (\d+) .*"
)
_MOST_LINES = 200_000
Address = ipaddress.IPv4Address | ipaddress.IPv6Address


@dataclass(frozen=True)
class Connection:
    """One end of an established connection; `inode` is the socket's number."""

    inode: int
    here: tuple[Address, int]
    there: tuple[Address, int]


def connections(root: Root, process: int) -> list[Connection]:
    """All of the network namespace of a process."""
    found = []
    for file in ("tcp", "tcp6"):
        text = (root.data(f"/proc/{process}/net/{file}", 64 << 20) or b"").decode("ascii", "replace")
        for line in text.splitlines()[1:_MOST_LINES]:
            if told := _LINE.fullmatch(line):
                ends = (_address(told[1]), int(told[2], 16)), (_address(told[3]), int(told[4], 16))
                found.append(Connection(int(told[5]), *ends))
    return found


def _address(text: str) -> Address:
    """The kernel prints words of 4 bytes in the machine's order."""
    data = b"".join(struct.pack("=I", int(text[at : at + 8], 16)) for at in range(0, len(text), 8))
    if len(data) == 4:
        return ipaddress.IPv4Address(data)
    wide = ipaddress.IPv6Address(data)
    return wide.ipv4_mapped or wide


def bytes_of_sockets(root: Root) -> dict[int, tuple[int, int]]:
    """Socket -> bytes that it has sent (and the other end has confirmed) and received, since it was opened. Only in the
    network namespace of this process. Raises Unknown."""
    rows = probe(root, "sockets").get("tcp")
    if not isinstance(rows, list):
        raise Unknown("needs the kernel's counts of TCP connections (sock_diag)")
    good = (row for row in rows if isinstance(row, list) and len(row) == 3 and all(isinstance(x, int) for x in row))
    return {inode: (sent, received) for inode, sent, received in good}


class Routes:
    """By which interface the network namespace of a process sends. Rules of policy routing are not read."""

    def __init__(self, root: Root, process: int) -> None:
        self._networks = sorted(_routes(root, process), key=lambda one: -one[0].prefixlen)
        self._here = set(_addresses_here(root, process))

    def is_here(self, address: Address) -> bool:
        """Whether the address is one of this machine."""
        return address.is_loopback or address in self._here

    def interface(self, there: Address) -> str:
        """ "lo" for an address of this machine; nothing if no route is known."""
        if self.is_here(there):
            return "lo"
        for network, name in self._networks:
            if there.version == network.version and there in network:
                return name
        return ""


Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def _routes(root: Root, process: int) -> Iterator[tuple[Network, str]]:
    for line in (root.text(f"/proc/{process}/net/route") or "").splitlines()[1:_MOST_LINES]:
        words = line.split()
        if len(words) >= 8 and re.fullmatch(r"[0-9A-F]{8}", words[1]) and re.fullmatch(r"[0-9A-F]{8}", words[7]):
            yield ipaddress.IPv4Network((int(_address(words[1])), int(_address(words[7])).bit_count()), False), words[0]
    for line in (root.text(f"/proc/{process}/net/ipv6_route") or "").splitlines()[:_MOST_LINES]:
        words = line.split()
        if len(words) == 10 and re.fullmatch(r"[0-9a-f]{32}", words[0]) and words[9] != "lo":
            yield ipaddress.IPv6Network((int(words[0], 16), min(int(words[1], 16), 128)), False), words[9]


def _addresses_here(root: Root, process: int) -> Iterator[Address]:
    text = root.text(f"/proc/{process}/net/fib_trie") or ""
    for told in re.finditer(r"\|-- (\d{1,3}(?:\.\d{1,3}){3})\s+/32 host LOCAL", text):
        yield ipaddress.IPv4Address(told[1])
    for line in (root.text(f"/proc/{process}/net/if_inet6") or "").splitlines()[:_MOST_LINES]:
        if re.match(r"[0-9a-f]{32} ", line):
            yield ipaddress.IPv6Address(int(line[:32], 16))
