"""From which interface of this machine packets come in at another: the other end of a pair, or the function behind a
representor."""

from __future__ import annotations

import re
from typing import Any

from waywiser.look.finding import Unknown
from waywiser.network.asking import Asked
from waywiser.network.interfaces import REPRESENTOR, VIRTUAL, Interface, read_links
from waywiser.network.steering import Steering

_OF_A_VIRTUAL_FUNCTION = re.compile(r"(?:c\d+)?pf\d+vf(\d+)")


def sender_of(asked: Asked, steering: Steering, one: Interface) -> tuple[str, str]:
    """Namespace ("" is this one) and name. Raises Unknown if none is known."""
    if one.kind == "veth":
        return _other_end(asked, one)
    number = _OF_A_VIRTUAL_FUNCTION.fullmatch(one.port)
    if one.role == REPRESENTOR and number:
        address = asked.link(f"/sys/bus/pci/devices/{one.address}/virtfn{number[1]}")
        found = [other.name for other in steering.interfaces if other.role == VIRTUAL and other.address == address]
        if found:
            return "", found[0]
        raise Unknown(f"virtual function {number[1]} has no interface in this namespace; let it send, with --watch")
    raise Unknown("nothing on this machine sends into it; let another machine send, with --watch")


def _other_end(asked: Asked, one: Interface) -> tuple[str, str]:
    link = next((row for row in read_links(asked) if row["ifname"] == one.name), {})
    if "link_netnsid" not in link:
        return "", str(link.get("link", ""))
    known = _rows(asked.json("ip", "-j", "netns", "list"))
    name = next((str(row["name"]) for row in known if row.get("id") == link["link_netnsid"] and "name" in row), "")
    if not name:
        raise Unknown("its other end is in a namespace without a name; let it send, with --watch")
    there = _rows(asked.json("ip", "-n", name, "-j", "link", "show"))
    found = [str(row["ifname"]) for row in there if row.get("ifindex") == link.get("link_index") and "ifname" in row]
    if not found:
        raise Unknown(f"its other end is not in namespace {name}")
    return name, found[0]


def _rows(value: Any) -> list[dict[str, Any]]:
    return [row for row in value if isinstance(row, dict)] if isinstance(value, list) else []
