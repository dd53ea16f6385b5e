"""Whether traffic really goes by hardware: sends some through each rule, and reads three counters before and after.

The counters are kept by three different parties: packets of the rule in hardware (the card), packets of the rule in
software (the kernel's classifier), and packets of the interface that arrived and that the processors saw (the driver).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from waywiser.errors import InputError
from waywiser.look.finding import Unknown
from waywiser.network.asking import Asked
from waywiser.network.filters import Filter
from waywiser.network.interfaces import Interface, packets, read_links
from waywiser.network.judging import COUNT, Counted, judge
from waywiser.network.packets import packet_for
from waywiser.network.senders import sender_of
from waywiser.network.steering import Steering, look, read_rules

# mlx5 reads the counters of its rules once a second (MLX5_FC_STATS_PERIOD in its fs_counters.c).
_LOOKS, _PAUSE = 4, 1.0
_MOST = 100  # rules
Pause = Callable[[float], None]


@dataclass(frozen=True)
class Proof:
    """What became of the packets for one rule. `sender`: the interface they left by; nothing if none were sent."""

    rule: Filter
    sender: str
    counted: Counted | None
    verdict: str
    why: str


@dataclass(frozen=True)
class _Counters:
    """Of one interface. `processors`: the packets that they saw; None if it is not told."""

    rules: dict[tuple[int, int, str], Filter]
    arrived: int
    processors: int | None


def prove(
    asked: Asked, interface: str, watch: bool, seconds: float, pause: Pause = time.sleep
) -> tuple[Steering, list[Proof]]:
    """Proves the rules for packets that come in, of one interface or of all. `watch`: sends nothing, and looks at the
    counters twice. Raises InputError."""
    steering = look(asked, 0.0, lambda _: None)
    if interface and not steering.named(interface):
        raise InputError(f"{interface}: has no rules: nothing to prove")
    rules = [one for one in steering.filters if one.interface == interface or not interface]
    return steering, _watched(asked, steering, rules, seconds, pause) if watch else [
        _proved(asked, steering, rule, pause) if number < _MOST else _unknown(rule, f"only {_MOST} rules are tried")
        for number, rule in enumerate(rules)
    ]


def _unknown(rule: Filter, why: object, sender: str = "") -> Proof:
    return Proof(rule, sender, None, "unknown", str(why))


def _why_not(rule: Filter) -> str:
    if rule.direction != "ingress":
        return "only rules for packets that come in are proved"
    if rule.chain:
        return "its packets come from a rule of chain 0: see there"
    return ""


def _key(rule: Filter) -> tuple[int, int, str]:
    return rule.chain, rule.pref, rule.handle


def _read(asked: Asked, one: Interface, mark: str) -> _Counters:
    """Raises Unknown, ValueError."""
    rules = {_key(rule): rule for rule in read_rules(asked, one, "ingress", mark)}
    link = next((row for row in read_links(asked, mark) if row["ifname"] == one.name), None)
    if link is None:
        raise Unknown(f"{one.name} is gone")
    return _Counters(rules, packets(link)[0], _processors(asked, one, mark))


def _processors(asked: Asked, one: Interface, mark: str) -> int | None:
    """Received packets that the processors saw: all of an interface without a card, else what its driver tells."""
    if not one.address:
        return packets(next(row for row in read_links(asked, mark) if row["ifname"] == one.name))[0]
    try:
        rows = asked.json(
            "ip", "-j", "stats", "show", "dev", one.name, "group", "offload", "subgroup", "cpu_hit", mark=mark
        )
    except Unknown:
        return None
    row = rows[0] if isinstance(rows, list) and rows and isinstance(rows[0], dict) else {}
    return packets(row)[0] if "stats64" in row else None


def _proved(asked: Asked, steering: Steering, rule: Filter, pause: Pause) -> Proof:
    one = steering.named(rule.interface)
    if one is None or (why := _why_not(rule)):
        return _unknown(rule, why if one else f"{rule.interface} is gone")
    mark = f" # {rule.name} {rule.handle}"
    sender = ""
    try:
        packet = packet_for(rule)
        namespace, sender = sender_of(asked, steering, one)
        before = _read(asked, one, f"{mark} before")
        asked.send(sender, COUNT, packet, namespace, mark)
        counted = _settled(asked, rule, one, before, mark, pause)
    except (Unknown, ValueError) as error:
        return _unknown(rule, error, sender)
    return Proof(rule, sender, counted, *judge(counted))


def _settled(asked: Asked, rule: Filter, one: Interface, before: _Counters, mark: str, pause: Pause) -> Counted:
    """What was counted once all packets were, or after the last look."""
    for number in range(_LOOKS):
        if number and asked.live:
            pause(_PAUSE)
        counted = _difference(rule, before, _read(asked, one, f"{mark} after {number}"), COUNT)
        if counted.hardware + counted.software >= COUNT and counted.arrived >= COUNT:
            break
    return counted


def _difference(rule: Filter, before: _Counters, after: _Counters, sent: int) -> Counted:
    """Raises Unknown if the rule is gone."""
    if _key(rule) not in before.rules or _key(rule) not in after.rules:
        raise Unknown("the rule is gone")
    moved = {
        key: (
            max(0, now.hardware_packets - before.rules[key].hardware_packets),
            max(0, now.software_packets - before.rules[key].software_packets),
        )
        for key, now in after.rules.items()
        if key in before.rules
    }
    hardware, software = moved[_key(rule)]
    first = next((key for key in moved if key != _key(rule) and not key[0] and sum(moved[key]) >= COUNT), None)
    known = before.processors is not None and after.processors is not None
    return Counted(
        sent,
        hardware,
        software,
        max(0, after.arrived - before.arrived),
        max(0, (after.processors or 0) - (before.processors or 0)) if known else None,
        after.rules[first].name if first and sent else "",
    )


def _watched(asked: Asked, steering: Steering, rules: Sequence[Filter], seconds: float, pause: Pause) -> list[Proof]:
    names = dict.fromkeys(rule.interface for rule in rules)
    looks: list[dict[str, _Counters | str]] = []
    for mark in (" # watch", " # watched"):
        if looks and asked.live:
            pause(seconds)
        looks.append({})
        for name in names:
            try:
                one = steering.named(name)
                looks[-1][name] = _read(asked, one, mark) if one else f"{name} is gone"
            except (Unknown, ValueError) as error:
                looks[-1][name] = str(error)
    return [_seen(rule, looks[0][rule.interface], looks[1][rule.interface]) for rule in rules]


def _seen(rule: Filter, before: _Counters | str, after: _Counters | str) -> Proof:
    if why := _why_not(rule):
        return _unknown(rule, why)
    if isinstance(before, str) or isinstance(after, str):
        return _unknown(rule, before if isinstance(before, str) else after)
    try:
        counted = _difference(rule, before, after, 0)
    except Unknown as error:
        return _unknown(rule, error)
    return Proof(rule, "", counted, *judge(counted))
