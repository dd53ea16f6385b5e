"""What `waywiser network` prints: tables for the terminal, or JSON."""

from __future__ import annotations

import json
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from waywiser.look.finding import Status
from waywiser.network.faults import Named
from waywiser.network.filters import Filter
from waywiser.network.steering import Steering
from waywiser.terminal import add, print_result, table

SCHEMA, VERSION = "waywiser.network", 1
_STYLES = {Status.problem: "bold red", Status.warning: "yellow", Status.unknown: "magenta"}
_MOST_SHOWN = 50


def where(rule: Filter) -> str:
    """Where a rule runs, in tc's words."""
    flags = [word for word, is_set in (("skip_sw", rule.skip_sw), ("skip_hw", rule.skip_hw)) if is_set]
    state = {True: "in_hw", False: "not_in_hw", None: "not said"}[rule.hardware]
    return " ".join([state, *flags])


def print_steering(steering: Steering, named: list[Named]) -> None:
    """Prints cards, interfaces, rules and faults."""
    parts: list[RenderableType] = [*_cards(steering), *_interfaces(steering), *_rules(steering), _others(steering)]
    for one in named:
        status = one.finding.status
        line = Text(f"{one.id or '   '} {status.value:<8} ", _STYLES.get(status, ""))
        line.append(f"{one.title}: {one.finding.text}", "default")
        parts.append(line)
        if one.remedy:
            parts.append(Text(f"             remedy: {one.remedy}", "cyan"))
    if not named:
        parts.append(Text("no fault found", "green"))
    print_result_of(parts)


def print_result_of(parts: list[RenderableType]) -> None:
    """Prints them one below the other."""
    from rich.console import Group

    print_result(Group(*parts))


def _cards(steering: Steering) -> list[RenderableType]:
    if not steering.cards:
        return [Text("no network card with a PCI address"), Text()]
    made = table("card", "driver", "eswitch", "who decides", ">virtual functions", title="Cards")
    for card in steering.cards:
        name = f"{card.address} {card.processors}".strip()
        add(made, name, card.driver or "-", card.mode, card.owner, str(card.virtual_functions))
    return [made, Text()]


def _interfaces(steering: Steering) -> list[RenderableType]:
    if not steering.interfaces:
        return []
    heads = ("interface", "what", "card", "driver", "port", "hw-tc-offload", "qdisc", ">rules", ">in hardware")
    made = table(*heads, title="Interfaces")
    for one in steering.interfaces:
        rules = steering.filters_of(one.name)
        counts = (str(len(rules)), str(sum(rule.hardware is True for rule in rules)))
        told = (
            one.name,
            one.role,
            one.address or "-",
            one.driver or "-",
            one.port or "-",
            one.offload,
            one.qdisc or "-",
        )
        add(made, *told, *counts)
    return [made, Text()]


def _rules(steering: Steering) -> list[RenderableType]:
    if not steering.filters:
        return []
    made = table("rule", "match", "actions", "where", ">hardware", ">software", title="Rules, with their packets")
    for rule in steering.filters[:_MOST_SHOWN]:
        match = f"{rule.protocol} {rule.keys}".strip()
        counts = (str(rule.hardware_packets), str(rule.software_packets))
        add(made, rule.name, match, ", ".join(rule.actions) or "-", where(rule), *counts)
    left = len(steering.filters) - _MOST_SHOWN
    return [made, *([Text(f"and {left} more (--json shows all)")] if left > 0 else []), Text()]


def _others(steering: Steering) -> Text:
    switch = steering.open_vswitch
    told = {None: f"unknown: {switch.why}", False: "none"}.get(switch.there, "")
    if switch.there:
        offload, bridges = "on" if switch.offload else "off", ", ".join(switch.bridges) or "none"
        told = f"{switch.kind}, hw-offload {offload}, bridges {bridges}"
    lines = [f"Open vSwitch: {told}"]
    for name, members in steering.bridges:
        lines.append(f"{name}: {', '.join(members)}")
    tracked = "not loaded" if steering.connections is None else "{} of {} connections".format(*steering.connections)
    if any(subject == "connection tracking" for subject, _ in steering.unknown):
        tracked = "unknown"
    return Text("\n".join([*lines, f"connection tracking: {tracked}", ""]))


def steering_json(steering: Steering, named: list[Named]) -> str:
    """The same as a JSON document."""
    switch, tracked = steering.open_vswitch, steering.connections
    value: dict[str, Any] = {
        "schema": SCHEMA,
        "version": VERSION,
        "host": steering.host,
        "kernel": steering.kernel,
        "cards": [vars(card) for card in steering.cards],
        "interfaces": [vars(one) for one in steering.interfaces],
        "rules": [{**vars(rule), "where": where(rule)} for rule in steering.filters],
        "open_vswitch": {**vars(switch), "there": "unknown" if switch.there is None else switch.there},
        "bridges": {name: list(members) for name, members in steering.bridges},
        "connections": None if tracked is None else {"used": tracked[0], "most": tracked[1]},
        "faults": [_fault(one) for one in named if one.id],
        "unknown": [{"what": subject, "why": why} for subject, why in steering.unknown],
    }
    return json.dumps(value, indent=1)


def _fault(one: Named) -> dict[str, str]:
    status, text = one.finding.status.value, one.finding.text
    return {"id": one.id, "title": one.title, "status": status, "found": text, "remedy": one.remedy}
