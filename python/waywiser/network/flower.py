"""A policy's rules as rules of tc flower, each with a cookie by which it is known again."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

from waywiser.network.policy import Match, Policy, Rule

COOKIE = "77617977"  # the first half of the cookies of all our rules
ZONE = "1000"  # of the connection tracker
_FAMILIES = {4: ("ip", "ipv4"), 6: ("ipv6", "ipv6")}
_LEAST_BURST, _MOST_BURST = 64 << 10, 1 << 30
_LARGEST_PACKET = "524288"  # bytes
_HANDLE = "1"


@dataclass(frozen=True)
class Entry:
    """One rule of tc. `keys` and `actions` are words of its command line."""

    interface: str
    pref: int
    chain: int
    protocol: str
    keys: tuple[str, ...]
    actions: tuple[tuple[str, ...], ...]
    cookie: str

    @property
    def place(self) -> tuple[str, ...]:
        """The words that name it."""
        where = ("dev", self.interface, "ingress", "protocol", self.protocol, "pref", str(self.pref))
        return (*where, "chain", str(self.chain), "handle", _HANDLE, "flower")

    def add(self, flag: str = "") -> tuple[str, ...]:
        """The command that makes it; `flag`: skip_sw, skip_hw or nothing."""
        words = [word for action in self.actions for word in ("action", *action, "cookie", self.cookie)]
        return ("tc", "filter", "add", *self.place, *([flag] if flag else []), *self.keys, *words)

    def delete(self) -> tuple[str, ...]:
        """The command that removes it."""
        return ("tc", "filter", "del", *self.place)


def entries_of(policy: Policy, software: bool = False) -> list[Entry]:
    """The rules of tc in the order in which they are made. Those of a chain come before the one that goes there."""
    made: list[Entry] = []
    places = dict.fromkeys(policy.interfaces, policy.first)
    for rule in policy.rules:
        for chain, protocol, keys, actions in _parts(rule, places[rule.on]):
            pref = places[rule.on]
            places[rule.on] += 1
            words = (rule.on, str(pref), str(chain), protocol, *keys, *sum(actions, ()), "software" * software)
            cookie = COOKIE + hashlib.sha256(" ".join(words).encode()).hexdigest()[:24]
            made.append(Entry(rule.on, pref, chain, protocol, keys, actions, cookie))
    return made


_Part = tuple[int, str, tuple[str, ...], tuple[tuple[str, ...], ...]]


def _parts(rule: Rule, pref: int) -> Iterator[_Part]:
    """Chain, protocol, keys and actions of each rule of tc."""
    for number, (protocol, keys) in enumerate(_matches(rule.match, rule.new is not None)):
        before = _before(rule)
        if rule.new is not None:
            chain = pref + number * (4 if rule.new else 3)  # the priority of its first rule, so no other has it
            yield from _tracked(rule, chain, protocol, keys, before)
        elif rule.end == "balance":
            for ports, name in _buckets(rule.ports):
                yield 0, protocol, (*keys, "src_port", ports), (*before, _forward(name))
        else:
            yield 0, protocol, keys, (*before, _end(rule))


def _tracked(
    rule: Rule, chain: int, protocol: str, keys: tuple[str, ...], before: tuple[tuple[str, ...], ...]
) -> Iterator[_Part]:
    tracked = ("ct", "zone", ZONE, "pipe")
    yield chain, protocol, ("ct_state", "+trk+est"), (*before, _end(rule))
    if rule.new:
        commit = ("ct", "commit", "zone", ZONE, "pipe")
        yield chain, protocol, ("ct_state", "+trk+new"), (commit, *before, _end(rule))
    yield chain, protocol, (), (("drop",),)
    yield 0, protocol, (*keys, "ct_state", "-trk"), (tracked, ("goto", "chain", str(chain)))


def _matches(match: Match, tracked: bool) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Protocol and keys; both families of addresses if a match that needs one names none."""
    for family in [4, 6] if tracked and match.families == [0] else match.families:
        keys: list[str] = []
        protocol, inner = _FAMILIES.get(family, ("all", ""))
        if match.vlan is not None:
            protocol = "802.1Q"
            keys += ["vlan_id", str(match.vlan)] + (["vlan_ethtype", inner] if inner else [])
        keys += _words(match)
        yield protocol, tuple(keys)


def _words(match: Match) -> list[str]:
    found: list[str] = []
    told = (("src_mac", match.source_mac), ("dst_mac", match.destination_mac), ("ip_proto", match.protocol))
    for word, value in told:
        found += [word, value] if value else []
    for word, network in (("src_ip", match.source), ("dst_ip", match.destination)):
        found += [word, str(network)] if network else []
    for word, ports in (("src_port", match.source_ports), ("dst_port", match.destination_ports)):
        if ports:
            found += [word, str(ports[0]) if ports[0] == ports[1] else f"{ports[0]}-{ports[1]}"]
    return found


def _before(rule: Rule) -> tuple[tuple[str, ...], ...]:
    found: list[tuple[str, ...]] = []
    if rule.rate:
        burst = min(max(_LEAST_BURST, rule.rate // 800), _MOST_BURST)  # bytes of 10 ms
        # tc's own mtu is 2 KiB: it would drop every larger packet, such as those that the kernel has joined.
        amount = ("rate", f"{rule.rate}bit", "burst", str(burst), "mtu", _LARGEST_PACKET)
        found.append(("police", *amount, "conform-exceed", "drop/pipe"))
    if rule.mirror:
        found.append(("mirred", "egress", "mirror", "dev", rule.mirror))
    return tuple(found)


def _forward(name: str) -> tuple[str, ...]:
    return ("mirred", "egress", "redirect", "dev", name)


def _end(rule: Rule) -> tuple[str, ...]:
    if rule.end == "forward":
        return _forward(rule.ports[0])
    if rule.end == "redirect":
        return ("mirred", "ingress", "redirect", "dev", rule.ports[0])
    return (rule.end,)


def _buckets(ports: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Masked ports of the sender, and where they go: equal shares, up to one bucket in four times as many as ports."""
    count = 1 << (len(ports) - 1).bit_length()
    count = count if count == len(ports) else 4 * count
    for bucket in range(count):
        yield f"{bucket}/{count - 1}", ports[bucket % len(ports)]
