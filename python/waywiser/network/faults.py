"""Faults of packet steering, a row for each: what is wrong, and the remedy. No row names a healthy machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from waywiser.look.finding import Finding, Status, problem, unknown, warning
from waywiser.network.filters import Filter
from waywiser.network.interfaces import REPRESENTOR, Interface
from waywiser.network.steering import Steering

MOVING = 100  # packets in one look: below, an interface counts as idle


@dataclass(frozen=True)
class Fault:
    """One row: id, title, remedy, whether it breaks what was asked for, and the function that finds it."""

    id: str
    title: str
    remedy: str
    broken: bool
    find: Callable[[Steering], Iterator[str]]


@dataclass(frozen=True)
class Named:
    """A fault that was found, or (id "") something that could not be looked at."""

    id: str
    title: str
    finding: Finding
    remedy: str


def _switchdev(steering: Steering, one: Interface) -> bool:
    card = steering.card_of(one)
    return card is not None and card.mode == "switchdev"


def _by_interface(steering: Steering) -> Iterator[tuple[Interface, list[Filter]]]:
    for one in steering.interfaces:
        rules = steering.filters_of(one.name)
        if rules:
            yield one, rules


def _count(rules: list[Filter]) -> str:
    return f"{rules[0].name}" + (f" and {len(rules) - 1} more" if len(rules) > 1 else "")


def _legacy(steering: Steering) -> Iterator[str]:
    for card in steering.cards:
        wanted = []
        if card.virtual_functions:
            wanted.append(f"it has {card.virtual_functions} virtual functions")
        if steering.open_vswitch.there and steering.open_vswitch.offload:
            wanted.append("Open vSwitch has hw-offload=true")
        if card.mode == "legacy" and wanted:
            yield f"card {card.address} ({card.driver}) is in legacy mode, and {' and '.join(wanted)}"


def _offload_off(steering: Steering) -> Iterator[str]:
    for one in steering.interfaces:
        rules = [rule for rule in steering.filters_of(one.name) if rule.for_cards]
        if one.offload == "off" and one.address and (_switchdev(steering, one) or rules):
            why = "its card is in switchdev mode" if _switchdev(steering, one) else f"it has {len(rules)} rules"
            yield f"hw-tc-offload of {one.name} is off, and {why}"


def _counting_nothing(steering: Steering) -> Iterator[str]:
    for one, rules in _by_interface(steering):
        there = [rule for rule in rules if rule.hardware]
        if there and not any(rule.packets for rule in rules) and (one.moved or 0) >= MOVING:
            yield (
                f"{len(there)} rules of {one.name} say in_hw and have counted no packet, while {one.name} moved"
                f" {one.moved} packets in {steering.seconds:g} s"
            )


def _tracking(steering: Steering) -> Iterator[str]:
    for _, rules in _by_interface(steering):
        wrong = [rule for rule in rules if rule.skip_sw and any(act.split(" ")[0] == "ct" for act in rule.actions)]
        if wrong:
            yield f"{_count(wrong)}: skip_sw together with ct, and new connections are tracked in software alone"


def _no_qdisc(steering: Steering) -> Iterator[str]:
    targets = {name for rule in steering.filters for name in rule.targets}
    for one in steering.interfaces:
        of_switch = one.master == "ovs-system" and steering.open_vswitch.offload
        if one.role == REPRESENTOR and one.up and not one.qdisc and (one.name in targets or of_switch):
            why = "Open vSwitch has it" if of_switch else "rules forward to it, and its answers have none"
            yield f"{one.name} has no ingress qdisc, so no rule sees its packets; {why}"


def _outlived(steering: Steering) -> Iterator[str]:
    for one, rules in _by_interface(steering):
        left = [r for r in rules if (r.skip_sw and r.hardware is False) or (r.hardware and one.offload == "off")]
        if left:
            yield f"{_count(left)}: made for the hardware, and no longer in it: they do nothing"


def _skip_hw(steering: Steering) -> Iterator[str]:
    for one, rules in _by_interface(steering):
        wrong = [rule for rule in rules if rule.skip_hw]
        if wrong and one.offload == "on" and one.address:
            yield f"{_count(wrong)}: skip_hw on an interface that offloads; the processors carry these packets"


def _in_software(steering: Steering) -> Iterator[str]:
    for one, rules in _by_interface(steering):
        wrong = [r for r in rules if r.hardware is False and r.for_cards and not r.skip_sw]
        if wrong and _switchdev(steering, one):
            yield f"{_count(wrong)}: not_in_hw although the card is in switchdev mode"


def _open_vswitch_off(steering: Steering) -> Iterator[str]:
    cards = [card.address for card in steering.cards if card.mode == "switchdev"]
    switch = steering.open_vswitch
    if cards and switch.there and switch.bridges and not switch.offload:
        yield f"Open vSwitch has hw-offload off, while {cards[0]} is in switchdev mode"


def _beside_the_kernel(steering: Steering) -> Iterator[str]:
    kind = steering.open_vswitch.kind
    if kind in ("DPDK", "DOCA", "userspace"):
        where = "in userspace" if kind == "userspace" else f"on {kind}"
        yield f"Open vSwitch runs {where}: tc says nothing about its rules, nor whether they are in hardware"


def _own_processors(steering: Steering) -> Iterator[str]:
    for card in steering.cards:
        if card.owner == "the card's own processors":
            yield f"the {card.processors} at {card.address} decides by its own processors: this host sets nothing"


FAULTS = (
    Fault(
        "N01",
        "eswitch in legacy mode",
        "devlink dev eswitch set pci/ADDRESS mode switchdev (virtual functions unbound before)",
        True,
        _legacy,
    ),
    Fault(
        "N02", "hw-tc-offload is off", "ethtool -K INTERFACE hw-tc-offload on; make the rules again", True, _offload_off
    ),
    Fault(
        "N03",
        "in hardware, counting nothing",
        "compare with `waywiser network apply --software`; check match, chain and the port at which packets come in",
        False,
        _counting_nothing,
    ),
    Fault(
        "N04",
        "connection tracking kept out of software",
        "make the rules again without skip_sw: tc filter show then says whether they are in_hw, too",
        True,
        _tracking,
    ),
    Fault("N05", "no ingress qdisc", "tc qdisc add dev INTERFACE clsact", True, _no_qdisc),
    Fault(
        "N06", "rules that outlived the offload", "tc filter del; switch offload on; make them again", True, _outlived
    ),
    Fault("N07", "skip_hw on a card that offloads", "make the rules again without skip_hw", False, _skip_hw),
    Fault(
        "N08",
        "in software on a card in switchdev mode",
        "add the rule with skip_sw once: the kernel then says why the card refuses it (dmesg)",
        False,
        _in_software,
    ),
    Fault(
        "N09",
        "Open vSwitch does not offload",
        "ovs-vsctl set Open_vSwitch . other_config:hw-offload=true, then restart ovs-vswitchd",
        False,
        _open_vswitch_off,
    ),
    Fault(
        "N10",
        "rules outside tc",
        "ovs-appctl dpctl/dump-flows -m type=offloaded shows them",
        False,
        _beside_the_kernel,
    ),
    Fault(
        "N11",
        "the card's own processors decide",
        "look there: waywiser network in the system that runs on the card",
        False,
        _own_processors,
    ),
)


def name_faults(steering: Steering) -> list[Named]:
    """The faults in the order of their ids, then what could not be looked at."""
    found = []
    for fault in FAULTS:
        for text in fault.find(steering):
            found.append(Named(fault.id, fault.title, problem(text) if fault.broken else warning(text), fault.remedy))
    found += [Named("", subject, unknown(why), "") for subject, why in steering.unknown]
    return found


def worst(named: list[Named]) -> Status:
    """The worst status: problem, warning, unknown, ok."""
    for status in (Status.problem, Status.warning, Status.unknown):
        if any(one.finding.status is status for one in named):
            return status
    return Status.ok
