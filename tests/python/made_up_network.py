"""Made-up machines for `waywiser network`: a card with an eswitch, its representors, their rules; a tc in memory."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from doctor_machines import build

from waywiser.look.finding import Unknown
from waywiser.look.root import Root
from waywiser.network.asking import Asked, Outcome

PF, VF = "0000:03:00.0", "0000:03:00.2"
SWITCH = "b8cef6ffff123456"
UPLINK, REP0, REP1, GUEST = "eth2", "eth2_0", "eth2_1", "eth4"
LINK_COMMAND = "ip -s -j -d link show"
AGAIN = " # again"
Json = dict[str, Any]


def link(name: str, received: int = 0, **more: Any) -> Json:
    counters = {"rx": {"packets": received, "bytes": 64 * received}, "tx": {"packets": 0, "bytes": 0}}
    return {"ifname": name, "flags": ["BROADCAST", "UP", "LOWER_UP"], "stats64": counters, **more}


def links(received: int = 0, kind: str = "") -> list[Json]:
    """The card's interfaces, `kind` of the representors' master: "ovs-system" or nothing."""
    master = {"master": kind} if kind else {}
    ports = [(UPLINK, "p0"), (REP0, "pf0vf0"), (REP1, "pf0vf1")]
    found = [link(name, received, phys_switch_id=SWITCH, phys_port_name=port, **master) for name, port in ports]
    return [*found, link(GUEST, received), *([link("ovs-system")] if kind == "ovs-system" else [])]


def rule(
    pref: int = 10, actions: Sequence[Json] = (), packets: int = 7, hardware: int | None = None, **options: Any
) -> Json:
    """A rule as tc prints it; in hardware with skip_sw unless options say something else."""
    told = {"skip_sw": True, "in_hw": True, "in_hw_count": 1, **options}
    stats = {"packets": packets, "bytes": 64 * packets}
    hardware = packets if hardware is None and told.get("in_hw") else hardware or 0
    if hardware:
        stats |= {"sw_packets": packets - hardware, "hw_packets": hardware}
    does = [*actions] or [mirred(REP1)]
    does[0] = {**does[0], "stats": stats}
    kept = {key: value for key, value in told.items() if value is not False}
    return {
        "protocol": "ip", "pref": pref, "kind": "flower", "chain": 0,
        "options": {"handle": 1, "keys": {"eth_type": "ipv4", "dst_ip": "10.1.0.0/16"}, **kept, "actions": does},
    }  # fmt: skip


def mirred(to: str) -> Json:
    return {
        "order": 1, "kind": "mirred", "mirred_action": "redirect", "direction": "egress", "to_dev": to,
        "control_action": {"type": "stolen"},
    }  # fmt: skip


CT = {"order": 1, "kind": "ct", "zone": 7, "control_action": {"type": "pipe"}}
SOFTWARE = {"skip_sw": False, "in_hw": False, "not_in_hw": True}


def card_files(device: str = "0x101d", driver: str = "mlx5_core", functions: int = 2, kernel: str = "6.1.0-9") -> Json:
    place = "/sys/bus/pci/devices"
    found: Json = {"/proc/sys/kernel/hostname": "made-up", "/proc/sys/kernel/osrelease": kernel}
    for address, names in ((PF, (UPLINK, REP0, REP1)), (VF, (GUEST,))):
        found[f"{place}/{address}/vendor"] = "0x15b3"
        found[f"{place}/{address}/device"] = device if address == PF else "0x101e"
        found[f"{place}/{address}/driver"] = ("link", f"/sys/bus/pci/drivers/{driver}")
        found |= {f"/sys/class/net/{name}/device": ("link", f"/sys/devices/{address}") for name in names}
    found[f"{place}/{PF}/sriov_numvfs"] = str(functions)
    found[f"{place}/{VF}/physfn"] = ("link", f"/sys/devices/{PF}")
    found |= {
        f"/proc/sys/net/netfilter/nf_conntrack_{word}": "12" if word == "count" else "1000" for word in ("count", "max")
    }
    return found


def commands(
    rules: Mapping[str, Sequence[Json]] | None = None,
    mode: str | None = "switchdev",
    offload: str = "on",
    qdiscs: Sequence[str] = (UPLINK, REP0, REP1),
    moved: int = 1000,
    open_vswitch: Mapping[str, str] | None = None,
    bridge: str = "",
    master: str = "",
) -> dict[str, str | None]:
    """The answers of the tools. `mode` None: devlink does not tell it."""
    there = {REP0: [rule()]} if rules is None else rules
    found: dict[str, str | None] = {
        LINK_COMMAND: json.dumps(links(0, master)),
        LINK_COMMAND + AGAIN: json.dumps(links(moved, master)),
        "devlink -j dev show": json.dumps({"dev": {f"pci/{PF}": {}}}),
        "devlink -j port show": json.dumps({"port": {f"pci/{PF}/1": {"netdev": REP0, "flavour": "pcivf"}}}),
        "tc -s -j qdisc show": json.dumps([{"kind": "clsact", "handle": "ffff:", "dev": name} for name in qdiscs]),
    }
    asked = f"devlink -j dev eswitch show pci/{PF}"
    if mode is None:
        found[f"! {asked}"] = "'devlink -j dev eswitch' failed (1): kernel answers: Operation not permitted"
    else:
        found[asked] = json.dumps({"dev": {f"pci/{PF}": {"mode": mode, "inline-mode": "none"}}})
    for name in (UPLINK, REP0, REP1, GUEST):
        told = offload if name != GUEST else "off [fixed]"
        found[f"ethtool -k {name}"] = f"Features for {name}:\nhw-tc-offload: {told}\n"
        for direction in ("ingress", "egress"):
            rows = there.get(name, []) if direction == "ingress" else []
            for mark in ("", AGAIN):
                found[f"tc -s -j filter show dev {name} {direction}{mark}"] = json.dumps(rows)
    if open_vswitch is not None:
        told = ", ".join(f'{key}="{value}"' for key, value in open_vswitch.items())
        found["ovs-vsctl --timeout=5 get Open_vSwitch . other_config"] = f"{{{told}}}\n"
        listing = "ovs-vsctl --timeout=5 --format=json --columns=name,datapath_type list Bridge"
        found[listing] = json.dumps({"headings": ["name", "datapath_type"], "data": [["br0", bridge]]})
    return found


def machine(folder: Path, answers: Mapping[str, str | None], files: Json | None = None, user: int = 0) -> Asked:
    """A made-up machine, replayed."""
    return Asked(build(folder, card_files() if files is None else files, answers, user=user))


def prove_files() -> Json:
    """The card's files with the link from the physical function to its virtual function."""
    return card_files() | {f"/sys/bus/pci/devices/{PF}/virtfn0": ("link", f"/sys/devices/{VF}")}


def proof(
    before: Json, packet: str, looks: Sequence[tuple[int, int, int, int | None]], sent: str = "", cpu_hit: bool = True
) -> dict[str, str | None]:
    """What the tools say when the one rule of REP0 is proved. Each look: packets in hardware, in software, arrived,
    seen by the processors. `sent`: why the packets could not be sent."""
    mark, found = f" # {REP0} ingress pref {before['pref']} 1", commands({REP0: [before]})
    told = before["options"]["actions"][0]["stats"]
    start = (told.get("hw_packets", 0), told["packets"] - told.get("hw_packets", 0), 0, 0)
    for when, look in [("before", start), *((f"after {number}", one) for number, one in enumerate(looks))]:
        stats = {"packets": look[0] + look[1], "bytes": 0, "sw_packets": look[1], "hw_packets": look[0]}
        action = {**before["options"]["actions"][0], "stats": stats}
        row = {**before, "options": {**before["options"], "actions": [action]}}
        found[f"tc -s -j filter show dev {REP0} ingress{mark} {when}"] = json.dumps([row])
        found[f"{LINK_COMMAND}{mark} {when}"] = json.dumps([link(REP0, look[2])])
        seen = {"ifname": REP0, **({"stats64": {"rx": {"packets": look[3]}}} if look[3] is not None else {})}
        if cpu_hit:
            found[f"ip -j stats show dev {REP0} group offload subgroup cpu_hit{mark} {when}"] = json.dumps([seen])
    key = f"send packets from {GUEST} 1000 {packet}{mark}"
    return {**found, **({f"! {key}": sent} if sent else {key: ""})}


class MadeUpTc:
    """Interfaces with rules in memory, behind the commands of tc, ip and ethtool that apply and undo use.

    `refuses`: whether the card refuses a rule. `offloads`: whether rules without a flag go to the card, too. `breaks`:
    at which command to fail; None: at none.
    """

    def __init__(self, names: Sequence[str], refuses: Callable[[str], bool] = lambda words: False) -> None:
        self.names = names
        self.refuses = refuses
        self.offloads = False
        self.breaks: int | None = None
        self.default_route = ""
        self.qdiscs: dict[str, str] = {}
        self.rules: dict[str, dict[tuple[int, int], Json]] = {name: {} for name in names}
        self.changes = 0

    def asked(self, folder: Path) -> Asked:
        return Asked(Root(folder, {}), self)

    def __call__(self, command: Sequence[str]) -> Outcome:
        words = list(command)
        if words[:3] == ["tc", "filter", "add"] or words[:3] == ["tc", "filter", "del"] or words[:2] == ["tc", "qdisc"]:
            return self._change(words) if words[2] in ("add", "del") else self._show(words)
        if words[0] == "tc":
            return self._show(words)
        if words == LINK_COMMAND.split(" "):
            return Outcome(0, json.dumps([link(name) for name in self.names]), "")
        if words[:2] == ["ip", "-j"]:
            routes = [{"dst": "default", "dev": self.default_route}] if self.default_route and "-4" in words else []
            addresses = [{"ifname": self.names[0], "addr_info": [{"local": "192.0.2.1"}]}]
            return Outcome(0, json.dumps(addresses if "addr" in words else routes), "")
        if words[0] == "ethtool":
            return Outcome(0, "hw-tc-offload: on\n", "")
        raise Unknown(f"needs the command {words[0]}, which is not installed")

    def put(self, name: str, pref: int, chain: int = 0) -> None:
        """A rule of others."""
        self.qdiscs.setdefault(name, "clsact")
        self.rules[name][chain, pref] = {**rule(pref), "chain": chain}

    def _change(self, words: list[str]) -> Outcome:
        self.changes += 1
        if self.breaks is not None and self.changes > self.breaks:
            self.breaks = None
            return Outcome(2, "", "RTNETLINK answers: No space left on device")
        name = words[words.index("dev") + 1]
        if words[1] == "qdisc":
            if (words[2] == "add") == (name in self.qdiscs):
                return Outcome(2, "", "RTNETLINK answers: Exclusivity flag on, cannot modify")
            self.qdiscs.pop(name) if words[2] == "del" else self.qdiscs.update({name: "clsact"})
            return Outcome(0, "", "")
        place = int(words[words.index("chain") + 1]), int(words[words.index("pref") + 1])
        if words[2] == "del":
            return (
                Outcome(0, "", "")
                if self.rules[name].pop(place, None)
                else Outcome(2, "", "RTNETLINK answers: No such file")
            )
        if name not in self.qdiscs or place in self.rules[name]:
            return Outcome(2, "", "RTNETLINK answers: Invalid argument")
        if "skip_sw" in words and self.refuses(" ".join(words)):
            return Outcome(2, "", "RTNETLINK answers: Operation not supported")
        to_card = self.offloads and "skip_hw" not in words and not self.refuses(" ".join(words))
        hardware = "skip_sw" in words or to_card
        options = {
            "handle": 1,
            "in_hw" if hardware else "not_in_hw": True,
            "words": " ".join(words[words.index("flower") :]),
        }
        actions = [{"order": 1, "kind": "gact", "cookie": words[words.index("cookie") + 1]}]
        head = {"protocol": words[words.index("protocol") + 1], "pref": place[1], "kind": "flower", "chain": place[0]}
        self.rules[name][place] = {**head, "options": {**options, "actions": actions}}
        return Outcome(0, "", "")

    def _show(self, words: list[str]) -> Outcome:
        if "qdisc" in words:
            wanted = [words[words.index("dev") + 1]] if "dev" in words else self.names
            rows: list[Json] = [{"kind": self.qdiscs[name], "dev": name} for name in wanted if name in self.qdiscs]
            return Outcome(0, json.dumps(rows), "")
        name = words[words.index("dev") + 1]
        if "egress" in words:
            return Outcome(0, "[]", "")
        return Outcome(0, json.dumps([one for _, one in sorted(self.rules[name].items())]), "")
