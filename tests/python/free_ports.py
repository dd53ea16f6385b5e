"""TCP ports for programs that are told theirs beforehand."""

from __future__ import annotations

import socket
from pathlib import Path

FIRST, LAST = 20000, 30000
RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")
_claims: dict[int, socket.socket] = {}


def for_connections() -> range:
    """The ports from which Linux gives one to each connection, and to each program that asks for any."""
    first, last = (int(word) for word in RANGE.read_text().split())
    return range(first, last + 1)


def claim(port: int) -> bool:
    """Says to all tests of this network, by an abstract socket, that `port` is taken until this process ends."""
    mine = socket.socket(socket.AF_UNIX)
    try:
        mine.bind(f"\0tcp port {port} of a test of waywiser")
    except OSError:
        mine.close()
        return False
    _claims[port] = mine
    return True


def is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def free_ports(count: int) -> int:
    """The first of `count` ports in a row. No other test and no connection gets them before the program listens."""
    taken = for_connections()
    for first in range(FIRST, LAST, count):
        ports = range(first, first + count)
        if all(port not in taken and port not in _claims and claim(port) and is_free(port) for port in ports):
            return first
    raise RuntimeError(f"no {count} free ports between {FIRST} and {LAST}")
