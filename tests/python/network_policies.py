"""Policies for the tests of `waywiser network apply`, and what applies, undoes and dumps them."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

from made_up_network import MadeUpTc

from waywiser.network.applying import Wishes, apply_policy
from waywiser.network.asking import Asked
from waywiser.network.traffic_control import TrafficControl
from waywiser.network.undoing import undo_policy

NAMES = ("va", "vb", "vc", "vd")
POLICY = """\
rules:
- on: va
  match: {from: 10.0.0.0/8, protocol: udp, to_port: 4791}
  do: {forward: vb}
- on: va
  match: {protocol: tcp, to_port: 1000-2000, vlan: 5}
  do: drop
- on: va
  match: {to: "fd00::/8", from_mac: "02:00:00:00:00:01"}
  do: {redirect: vc}
- on: vb
  match: {protocol: icmp}
  do: {rate: 2.5 Mbit/s, mirror: vc, pass: yes}
- on: vb
  match: {to: 10.1.0.0/16, protocol: tcp}
  do: {connections: established, forward: va}
- on: vb
  match: {protocol: sctp, from: 10.0.0.0/8}
  do: {balance: [va, vc, vd]}
"""


def written(folder: Path, text: str = POLICY) -> Path:
    file = folder / "policy.yaml"
    file.write_text(text)
    return file


def applied(tc: MadeUpTc, file: Path, *, environment: dict[str, str] | None = None, **wishes: Any) -> int:
    return apply_policy(file, Wishes(**wishes), tc.asked(file.parent), TrafficControl(tc), environment or {})


def undone(tc: MadeUpTc, file: Path, dry_run: bool = False) -> int:
    return undo_policy(file.with_name(f"{file.name}.undo.json"), dry_run, False, TrafficControl(tc))


def dumps(tc: Any, names: tuple[str, ...] = NAMES) -> list[tuple[str, str]]:
    found = [TrafficControl(tc).dump(name) for name in names]
    return [(dump.qdisc, dump.rules) for dump in found]


def with_card(tc: MadeUpTc, folder: Path) -> Asked:
    """Each interface has a card of its own that offloads."""
    tc.offloads = True
    for index, name in enumerate(NAMES):
        place = folder / f"sys/class/net/{name}/device"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(f"../0000:0{index + 1}:00.0")
    return tc.asked(folder)


def flags(tc: MadeUpTc, name: str) -> set[str]:
    words = [str(one["options"]["words"]).split()[1] for one in tc.rules[name].values()]
    return {word if word.startswith("skip") else "" for word in words}


def random_policy(chance: random.Random, names: tuple[str, ...] = NAMES) -> str:
    """A policy that may be applied: JSON, which is YAML too."""
    rules = []
    for _ in range(chance.randint(1, 6)):
        on = chance.choice(names)
        others = [name for name in names if name != on]
        match: dict[str, Any] = {}
        version = chance.choice((0, 4, 6))
        for key in ("from", "to"):
            if version and chance.random() < 0.6:
                match[key] = {4: f"10.{chance.randint(0, 255)}.0.0/16", 6: f"fd{chance.randint(10, 99)}::/16"}[version]
        protocol = chance.choice(("", "tcp", "udp", "sctp", "icmpv6" if version == 6 else "icmp"))
        match |= {"protocol": protocol} if protocol else {}
        if protocol in ("tcp", "udp", "sctp") and chance.random() < 0.5:
            low = chance.randint(1, 60000)
            match["to_port"] = chance.choice((str(low), f"{low}-{low + chance.randint(1, 5000)}"))
        if chance.random() < 0.3:
            match[chance.choice(("from_mac", "to_mac"))] = f"02:00:00:00:00:{chance.randint(16, 99)}"
        does: dict[str, Any] = {}
        kind = chance.choice(("drop", "pass", "forward", "redirect", "balance", "connections"))
        if kind == "balance" and protocol in ("tcp", "udp", "sctp"):
            does["balance"] = others[: chance.randint(2, len(others))]
        elif kind == "connections":
            does |= {"connections": chance.choice(("any", "established")), "forward": others[0]}
        elif kind in ("forward", "redirect"):
            does[kind] = others[0]
        else:
            does["drop" if kind == "drop" else "pass"] = "yes"
            match |= {"vlan": chance.randint(1, 4094)} if chance.random() < 0.3 else {}
        if chance.random() < 0.3:
            does["mirror"] = others[-1]
        one_family = protocol not in ("tcp", "udp", "sctp") or match.keys() & {"from", "to"}
        if chance.random() < 0.5 and one_family and not does.keys() & {"balance", "connections"}:
            does["rate"] = f"{chance.randint(1, 400)} Gbit/s"
        rules.append({"on": on, "match": match, "do": does})
    return json.dumps({"first_priority": chance.randint(100, 20000), "rules": rules})
