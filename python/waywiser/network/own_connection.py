"""Whether a policy may cut off the connection of the person who applies it."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from typing import Any

from waywiser.errors import InputError
from waywiser.look.finding import Unknown
from waywiser.look.processes import parents
from waywiser.look.root import Root
from waywiser.network.asking import Asked
from waywiser.network.interfaces import LINKS
from waywiser.network.policy import Match, Network, Policy

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
_SESSION = "SSH_CONNECTION"
_ADDRESSES = ("ip", "-j", "addr", "show")
_ROUTES = [
    ("ip", "-j", flag, "route", "show", "table", "all", "default") for flag in ("-4", "-6")
]  # also those of VRFs
_LOOPBACK = "lo"


def check_own_connection(policy: Policy, asked: Asked, environment: Mapping[str, str]) -> None:
    """Raises InputError for a rule that takes packets away at the interface of a default route or at the loopback, or
    those of the session by ssh that this is. Raises Unknown if ip does not answer."""
    links = _rows(asked.json(*LINKS))
    routes = [row for command in _ROUTES for row in _rows(asked.json(*command))]
    default = _with_parts({str(row["dev"]) for row in routes if row.get("dev")}, links)
    session = _session(environment)
    by_ssh = _with_parts(_holders(asked, session[1]), links) if session else set()
    for rule in policy.rules:
        if not rule.takes:
            continue
        why = ""
        if rule.on in default:
            why = f"{rule.on} carries the default route"
        elif rule.on == _LOOPBACK:
            why = "lo carries what programs of this machine say to each other"
        elif session and rule.on in by_ssh and _may_fit(rule.match, *session):
            why = f"your session by ssh comes in at {rule.on}"
        if why:
            raise InputError(
                f"{policy.file}, line {rule.line}: {why}: this may cut off your connection; --force does it"
            )


def own_environment(environment: Mapping[str, str], root: Root, number: int) -> Mapping[str, str]:
    """With the session by ssh of a process above `number`, if sudo has taken it out of the environment."""
    above = {} if _SESSION in environment else parents(root)
    for _ in above:
        number = above.get(number, 0)
        try:
            found = root.data(f"/proc/{number}/environ", 1 << 20) or b""
        except Unknown:
            continue
        for one in found.decode("utf-8", "replace").split("\0"):
            if one.startswith(f"{_SESSION}="):
                return {**environment, _SESSION: one.partition("=")[2]}
    return environment


def ask_for_recording(asked: Asked) -> None:
    """What a recorded machine needs for `apply --dry-run`."""
    for command in (LINKS, _ADDRESSES, *_ROUTES):
        try:
            asked.json(*command)
        except Unknown:  # it is recorded as unknown
            continue


def _rows(value: Any) -> list[dict[str, Any]]:
    return [row for row in value if isinstance(row, dict)] if isinstance(value, list) else []


def _session(environment: Mapping[str, str]) -> tuple[Address, Address, int, int] | None:
    """Client, server and their ports."""
    words = environment.get(_SESSION, "").split()
    try:
        client, server = (ipaddress.ip_address(words[index].partition("%")[0]) for index in (0, 2))
        return client, server, int(words[1]), int(words[3])
    except (ValueError, IndexError):
        return None


def _holders(asked: Asked, address: Address) -> set[str]:
    found = set()
    for row in _rows(asked.json(*_ADDRESSES)):
        for one in _rows(row.get("addr_info")):
            try:
                if ipaddress.ip_address(str(one.get("local"))) == address:
                    found.add(str(row.get("ifname")))
            except ValueError:
                continue
    return found


def _with_parts(names: set[str], links: list[dict[str, Any]]) -> set[str]:
    """Also the ports of a bridge or bond, and the interface below a VLAN."""
    found = set(names)
    for _ in links:
        more = {str(row["ifname"]) for row in links if row.get("master") in found}
        more |= {str(row["link"]) for row in links if row.get("ifname") in found and row.get("link")}
        if more <= found:
            break
        found |= more
    return found


def _may_fit(match: Match, client: Address, server: Address, client_port: int, server_port: int) -> bool:
    """Whether packets from the client may fit."""

    def within(network: Network | None, address: Address) -> bool:
        return network is None or address in network

    def among(ports: tuple[int, int] | None, port: int) -> bool:
        return ports is None or ports[0] <= port <= ports[1]

    return (
        match.protocol in ("", "tcp")
        and within(match.source, client)
        and within(match.destination, server)
        and among(match.source_ports, client_port)
        and among(match.destination_ports, server_port)
    )
