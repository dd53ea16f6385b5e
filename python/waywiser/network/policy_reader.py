"""Reads a policy file, YAML or JSON; what is wrong is one line with the number of the line.

rules:
- on: eth2
  match: {to: 10.1.0.0/16, protocol: udp, to_port: 4791}
  do: {forward: eth3}
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import yaml

from waywiser.errors import InputError
from waywiser.files import read_text
from waywiser.json_fields import clean
from waywiser.network.policy import PROTOCOLS, WITH_PORTS, Match, Network, Policy, Rule
from waywiser.yaml_text import root_of

_MOST_BYTES = 256 << 10
_MOST_RULES, _MOST_PORTS = 200, 16
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.@-]{0,14}")
_MAC = re.compile(r"[0-9a-f]{2}(:[0-9a-f]{2}){5}")
_RATE = re.compile(r"(\d{1,9}(?:\.\d{1,3})?) ?(k|M|G|T)?bit/s")
_PORTS = re.compile(r"(\d{1,5})(?:-(\d{1,5}))?")
_UNITS = {None: 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_END = ("drop", "pass", "forward", "redirect", "balance")


class _Reader:
    def __init__(self, what: str) -> None:
        self.what = what

    def refuse(self, node: Any, why: str) -> InputError:
        return InputError(f"{self.what}, line {node.start_mark.line + 1}: {clean(why)}")

    def pairs(self, node: Any, key: str, known: Callable[[], tuple[str, ...]]) -> Iterator[tuple[str, Any]]:
        if not isinstance(node, yaml.MappingNode):
            raise self.refuse(node, f"{key} must be a list of NAME: VALUE; names are {', '.join(known())}")
        seen = set()
        for name, value in node.value:
            text = self.text(name, key)
            if text in seen:
                raise self.refuse(name, f"{text[:40]!r} is given twice")
            if text not in known():
                raise self.refuse(name, f"{text[:40]!r} is no part of {key}; there are {', '.join(known())}")
            seen.add(text)
            yield text, value

    def text(self, node: Any, key: str) -> str:
        if not isinstance(node, yaml.ScalarNode):
            raise self.refuse(node, f"{key} must be one word")
        return str(node.value).strip()

    def items(self, node: Any, key: str, most: int) -> list[Any]:
        if not isinstance(node, yaml.SequenceNode) or not 1 <= len(node.value) <= most:
            raise self.refuse(node, f"{key} must be a list of 1 to {most}")
        return list(node.value)

    def port(self, node: Any, key: str) -> str:
        text = self.text(node, key)
        if not _NAME.fullmatch(text):
            raise self.refuse(node, f"{key}: {text[:40]!r} is no name of an interface")
        return text

    def whole(self, node: Any, key: str, least: int, most: int) -> int:
        text = self.text(node, key)
        if not re.fullmatch(r"\d{1,9}", text) or not least <= int(text) <= most:
            raise self.refuse(node, f"{key} must be a whole number from {least} to {most}, not {text[:40]!r}")
        return int(text)

    # ---- match ----
    def match(self, node: Any) -> Match:
        found: dict[str, Any] = {}
        for name, value in self.pairs(node, "match", lambda: tuple(_MATCH)):
            where, read = _MATCH[name]
            found[where] = read(self, value, name)
        match = Match(**found)
        if match.source and match.destination and match.source.version != match.destination.version:
            raise self.refuse(node, "from and to must both be IPv4 or both be IPv6")
        if (match.source_ports or match.destination_ports) and match.protocol not in WITH_PORTS:
            raise self.refuse(node, f"ports need a protocol: {', '.join(WITH_PORTS)}")
        version = next((net.version for net in (match.source, match.destination) if net), None)
        if version and match.protocol == {4: "icmpv6", 6: "icmp"}[version]:
            raise self.refuse(node, f"{match.protocol} does not go with addresses of IPv{version}")
        return match

    def network(self, node: Any, key: str) -> Network:
        text = self.text(node, key)
        try:
            return ipaddress.ip_network(text)
        except ValueError as error:
            raise self.refuse(node, f"{key}: {error}") from None

    def protocol(self, node: Any, key: str) -> str:
        text = self.text(node, key).lower()
        if text not in PROTOCOLS:
            raise self.refuse(node, f"{key} must be one of {', '.join(PROTOCOLS)}")
        return text

    def ports(self, node: Any, key: str) -> tuple[int, int]:
        found = _PORTS.fullmatch(self.text(node, key))
        low, high = (int(found[1]), int(found[2] or found[1])) if found else (0, 0)
        if not 1 <= low <= high <= 65535:
            raise self.refuse(node, f"{key} must be a port or a range, such as 4791 or 1024-2047")
        return low, high

    def mac(self, node: Any, key: str) -> str:
        text = self.text(node, key).lower()
        if not _MAC.fullmatch(text):
            raise self.refuse(node, f"{key} must be like 02:00:00:00:00:01 (in quotes)")
        return text

    def vlan(self, node: Any, key: str) -> int:
        return self.whole(node, key, 1, 4094)

    # ---- do ----
    def does(self, node: Any) -> dict[str, Any]:
        if isinstance(node, yaml.ScalarNode):
            word = self.text(node, "do")
            if word not in ("drop", "pass"):
                raise self.refuse(
                    node, f"do: {word[:40]!r} is none of {', '.join(_DO)} (drop and pass without a value)"
                )
            return {"end": word}
        found: dict[str, Any] = {}
        for name, value in self.pairs(node, "do", lambda: tuple(_DO)):
            if name in _END and "end" in found:
                raise self.refuse(value, f"{name} after {found['end']}: a packet has one end")
            _DO[name](self, found, value, name)
        if not found:
            raise self.refuse(node, f"do is empty; there are {', '.join(_DO)}")
        return found

    def ending(self, found: dict[str, Any], node: Any, key: str) -> None:
        found["end"] = key
        if key in ("forward", "redirect"):
            found["ports"] = (self.port(node, key),)
        elif key == "balance":
            names = tuple(self.port(one, key) for one in self.items(node, key, _MOST_PORTS))
            if len(set(names)) != len(names) or len(names) < 2:
                raise self.refuse(node, "balance needs 2 ports or more, each once")
            found["ports"] = names
        elif self.text(node, key) not in ("", "yes", "true"):
            raise self.refuse(node, f"{key} takes no value")

    def mirror(self, found: dict[str, Any], node: Any, key: str) -> None:
        found["mirror"] = self.port(node, key)

    def rate(self, found: dict[str, Any], node: Any, key: str) -> None:
        told = _RATE.fullmatch(self.text(node, key))
        value = round(float(told[1]) * _UNITS[told[2]]) if told else 0
        if not 10_000 <= value <= 10**13:
            raise self.refuse(node, f"{key} must be from 10 kbit/s to 10 Tbit/s, such as 2.5 Gbit/s")
        found["rate"] = value

    def connections(self, found: dict[str, Any], node: Any, key: str) -> None:
        words = {"any": True, "established": False}
        word = self.text(node, key)
        if word not in words:
            raise self.refuse(node, f"{key} must be any (packets may open one) or established (they may not)")
        found["new"] = words[word]

    # ---- the file ----
    def rule(self, node: Any) -> Rule:
        line = node.start_mark.line + 1
        on, match, does = "", Match(), None
        for name, value in self.pairs(node, "a rule", lambda: ("on", "match", "do")):
            if name == "on":
                on = self.port(value, name)
            elif name == "match":
                match = self.match(value)
            else:
                does = self.does(value)
        if not on or does is None:
            raise self.refuse(node, f"a rule needs {'on' if not on else 'do'}")
        rule = Rule(line, on, match, **does)
        if rule.end == "balance" and match.protocol not in WITH_PORTS:
            raise self.refuse(
                node, f"balance goes by the port of the sender: match a protocol: {', '.join(WITH_PORTS)}"
            )
        if rule.end == "balance" and match.source_ports:
            raise self.refuse(node, "balance goes by the port of the sender, so from_port cannot be matched too")
        if rule.new is not None and rule.end not in ("pass", "forward"):
            raise self.refuse(node, "connections go with pass and forward")
        if rule.new is not None and match.vlan is not None:
            raise self.refuse(node, "connections do not go with vlan")
        if rule.rate and (rule.end == "balance" or rule.new is not None or len(match.families) > 1):
            why = "rate goes without balance and connections, and with one family of addresses"
            raise self.refuse(node, f"{why} (from or to): each rule of tc would count alone")
        if rule.on in rule.ports and rule.end == "redirect":
            raise self.refuse(node, f"a redirect from {rule.on} to itself never ends")
        return rule


_MATCH: dict[str, tuple[str, Callable[[_Reader, Any, str], Any]]] = {
    "from": ("source", _Reader.network),
    "to": ("destination", _Reader.network),
    "protocol": ("protocol", _Reader.protocol),
    "from_port": ("source_ports", _Reader.ports),
    "to_port": ("destination_ports", _Reader.ports),
    "from_mac": ("source_mac", _Reader.mac),
    "to_mac": ("destination_mac", _Reader.mac),
    "vlan": ("vlan", _Reader.vlan),
}
_DO: dict[str, Callable[[_Reader, dict[str, Any], Any, str], None]] = {
    **dict.fromkeys(_END, _Reader.ending),
    "mirror": _Reader.mirror,
    "rate": _Reader.rate,
    "connections": _Reader.connections,
}


def parse_policy(text: str, what: str) -> Policy:
    """The policy in `text`. Raises InputError: one line with file and line."""
    reader = _Reader(what)
    root = root_of(text, what)
    if root is None:
        raise InputError(f"{what}, line 1: a policy needs rules")
    first, rules = Policy.first, []
    for name, value in reader.pairs(root, "a policy", lambda: ("first_priority", "rules")):
        if name == "first_priority":
            first = reader.whole(value, name, 1, 30000)
        else:
            rules = [reader.rule(one) for one in reader.items(value, name, _MOST_RULES)]
    if not rules:
        raise InputError(f"{what}, line 1: a policy needs rules")
    return Policy(what, tuple(rules), first)


def read_policy(file: Path) -> Policy:
    """The policy in a file. Raises InputError."""
    return parse_policy(read_text(file, _MOST_BYTES), str(file))
