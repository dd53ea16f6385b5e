"""`waywiser network`: what it says of made-up machines, healthy and with one fault each; recording and replaying."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from doctor_machines import build
from made_up_network import (
    AGAIN,
    CT,
    PF,
    REP0,
    SOFTWARE,
    UPLINK,
    card_files,
    commands,
    machine,
    rule,
)  # fmt: skip
from verb_runs import Run

from waywiser.look.finding import Status, Unknown
from waywiser.network.asking import Asked, Outcome, replayed, run_command
from waywiser.network.faults import FAULTS, name_faults, worst
from waywiser.network.filters import read_filters
from waywiser.network.steering import look

DROP = {"order": 1, "kind": "gact", "control_action": {"type": "drop"}}
PROGRAM = {**rule(**SOFTWARE), "kind": "bpf"}
HEALTHY: dict[str, dict[str, Any]] = {
    "switchdev, rules in hardware": {},
    "switchdev, no rules yet": {"rules": {}, "qdiscs": ()},
    "legacy without virtual functions": {"mode": "legacy", "files": card_files(functions=0), "rules": {}, "qdiscs": ()},
    "connection tracking in hardware": {"rules": {REP0: [rule(actions=[CT], skip_sw=False)]}},
    "nothing counted, nothing moved": {"rules": {REP0: [rule(packets=0)]}, "moved": 3},
    "rules at one port, the others have no part": {"rules": {REP0: [rule(actions=[DROP])]}, "qdiscs": (UPLINK, REP0)},
    "a program at a card that offloads nothing": {
        "mode": "legacy",
        "files": card_files(functions=0),
        "offload": "off",
        "rules": {UPLINK: [PROGRAM]},
    },
    "a program in switchdev mode": {"rules": {UPLINK: [PROGRAM]}},
    "Open vSwitch that offloads": {"open_vswitch": {"hw-offload": "true"}, "master": "ovs-system"},
}
FAULTY: dict[str, dict[str, Any]] = {
    "N01": {"mode": "legacy", "rules": {}, "qdiscs": ()},
    "N02": {"offload": "off", "rules": {}, "qdiscs": ()},
    "N03": {"rules": {REP0: [rule(packets=0)]}},
    "N04": {"rules": {REP0: [rule(actions=[CT])]}},
    "N05": {"qdiscs": (UPLINK, REP0)},
    "N06": {"rules": {REP0: [rule(in_hw=False, not_in_hw=True), rule(11)]}},
    "N07": {"rules": {REP0: [rule(**{**SOFTWARE, "skip_hw": True}), rule(11)]}},
    "N08": {"rules": {REP0: [rule(**SOFTWARE), rule(11)]}},
    "N09": {"open_vswitch": {"hw-offload": "false"}},
    "N10": {"open_vswitch": {"dpdk-init": "true", "hw-offload": "true"}, "bridge": "netdev"},
    "N11": {"mode": None, "files": card_files(device="0xa2dc", functions=0), "rules": {}, "qdiscs": ()},
}  # fmt: skip


def looked(folder: Path, files: dict[str, Any] | None = None, **changes: Any) -> Asked:
    return machine(folder, commands(**changes), files)


@pytest.mark.parametrize("name", HEALTHY)
def test_a_healthy_machine_has_no_fault(name: str, tmp_path: Path) -> None:
    named = name_faults(look(looked(tmp_path, **HEALTHY[name])))
    assert [(one.id, one.finding.text) for one in named if one.id] == []


@pytest.mark.parametrize("id_", FAULTY)
def test_each_fault_is_named_by_one_line_with_its_remedy(id_: str, tmp_path: Path) -> None:
    named = [one for one in name_faults(look(looked(tmp_path, **FAULTY[id_]))) if one.id]
    assert {one.id for one in named} == {id_}
    assert all(one.remedy and "\n" not in one.finding.text + one.remedy for one in named)
    assert named[0].finding.status in (Status.problem, Status.warning)


def test_every_fault_has_its_machine() -> None:
    assert [fault.id for fault in FAULTS] == list(FAULTY)
    assert len({fault.title for fault in FAULTS}) == len(FAULTS) == 11


def test_the_page_lists_the_faults() -> None:
    page = (Path(__file__).parents[2] / "docs/network.md").read_text()
    rows = re.findall(r"^\| (N\d\d) \| ([^|]+) \|", page, re.MULTILINE)
    assert rows == [(fault.id, fault.title) for fault in FAULTS]


def test_rules_left_in_hardware_after_the_offload_was_switched_off(tmp_path: Path) -> None:
    named = {one.id for one in name_faults(look(looked(tmp_path, offload="off")))}
    assert named == {"N02", "N06"}


@pytest.mark.parametrize(
    ("options", "bridge", "kind", "where"),
    [
        ({"doca-init": "true"}, "", "DOCA", "on DOCA"),
        ({"doca-init": "true", "dpdk-init": "true"}, "netdev", "DOCA", "on DOCA"),
        ({"dpdk-init": "try"}, "", "DPDK", "on DPDK"),
        ({"dpdk-init": "false"}, "netdev", "userspace", "in userspace"),
        ({}, "netdev", "userspace", "in userspace"),
    ],
)
def test_open_vswitch_beside_the_kernel(
    options: dict[str, str], bridge: str, kind: str, where: str, tmp_path: Path
) -> None:
    found = look(looked(tmp_path, open_vswitch={**options, "hw-offload": "true"}, bridge=bridge))
    (named,) = name_faults(found)
    assert (found.open_vswitch.kind, named.id) == (kind, "N10") and f"runs {where}: tc says" in named.finding.text


def test_rules_for_packets_that_leave_are_shown_and_named(tmp_path: Path) -> None:
    answers = commands(rules={})
    for mark in ("", AGAIN):
        answers[f"tc -s -j filter show dev {REP0} egress{mark}"] = json.dumps([rule(**SOFTWARE)])
    found = look(machine(tmp_path, answers))
    named = [one for one in name_faults(found) if one.id]
    assert [one.direction for one in found.filters] == ["egress"] and [one.id for one in named] == ["N08"]
    assert f"{REP0} egress pref 10" in named[0].finding.text


def test_who_decides(tmp_path: Path) -> None:
    here = look(looked(tmp_path / "1"))
    assert [(card.address, card.mode, card.owner) for card in here.cards] == [(PF, "switchdev", "this system")]
    roles = [(one.name, one.role, one.port) for one in here.interfaces]
    assert roles == [
        ("eth2", "physical function", "p0"), ("eth2_0", "representor", "pf0vf0"),
        ("eth2_1", "representor", "pf0vf1"), ("eth4", "virtual function", ""),
    ]  # fmt: skip
    answers = commands()
    answers["devlink -j port show"] = json.dumps(
        {"port": {"1": {"netdev": REP0, "flavour": "pcivf", "external": True}}}
    )
    on_card = look(machine(tmp_path / "2", answers))
    assert on_card.cards[0].owner == "this system, on the card's own processors"
    away = look(looked(tmp_path / "3", **FAULTY["N11"]))
    assert (away.cards[0].mode, away.cards[0].owner) == ("unknown", "the card's own processors")


def test_without_rights_the_owner_is_unknown(tmp_path: Path) -> None:
    asked = machine(tmp_path, commands(mode=None), card_files(device="0xa2dc"), user=1000)
    found = look(asked)
    assert (found.cards[0].mode, found.cards[0].owner) == ("unknown", "unknown")
    assert "only to root" in dict(found.unknown)[f"eswitch of {PF}"]


@pytest.mark.parametrize(
    "files",
    [
        {"/proc/self/status": "Name:\tx\nCapEff:\t00000000a80425fb\n"},  # as Docker starts root
        {"/proc/self/uid_map": "         0     100000      65536\n"},
    ],
)
def test_root_of_a_container_does_not_know_the_owner(files: dict[str, str], tmp_path: Path) -> None:
    card = card_files(device="0xa2df", functions=0)
    found = look(machine(tmp_path / "a", commands(mode=None), card | files))
    assert (found.cards[0].owner, found.cards[0].processors) == ("unknown", "BlueField-4")
    assert not [one for one in name_faults(found) if one.id == "N11"]
    whole = {"/proc/self/status": "CapEff:\t000001ffffffffff\n", "/proc/self/uid_map": "0 0 4294967295\n"}
    assert (
        look(machine(tmp_path / "b", commands(mode=None), card | whole)).cards[0].owner == "the card's own processors"
    )


@pytest.mark.parametrize("tool", ["ip", "tc", "devlink", "ethtool"])
def test_a_missing_tool_is_unknown_and_never_ok(tool: str, tmp_path: Path) -> None:
    answers = {key: None if key.split(" ")[0] == tool else text for key, text in commands().items()}
    named = name_faults(look(machine(tmp_path, answers)))
    assert worst(named) is not Status.ok
    assert any(f"needs the command {tool}" in one.finding.text for one in named if not one.id)


def test_an_open_vswitch_that_cannot_be_asked_is_unknown(tmp_path: Path) -> None:
    found = look(looked(tmp_path, card_files() | {"/run/openvswitch/db.sock": ""}))
    assert found.open_vswitch.there is None and "Open vSwitch" in dict(found.unknown)


@pytest.mark.parametrize("text", ["{", "[1, null, {}]", '{"a": 1}', '"x"', "[" * 3000])
@pytest.mark.parametrize("key", list(commands()))
def test_strange_answers_raise_nothing(key: str, text: str, tmp_path: Path) -> None:
    name_faults(look(machine(tmp_path, {**commands(), key: text})))


def test_a_rule_as_tc_prints_it() -> None:
    row = rule(20, packets=9, hardware=4, in_hw=True, skip_sw=False)
    (found,) = read_filters([{"protocol": "ip", "pref": 20, "kind": "flower", "chain": 0}, row], "eth2", "ingress")
    assert (found.hardware, found.packets, found.hardware_packets, found.software_packets) == (True, 9, 4, 5)
    assert found.keys == "dst_ip 10.1.0.0/16" and found.actions == ("mirred redirect egress eth2_1",)
    row["options"]["keys"] = {"ip_proto": "udp", "dst_port": {"start": 1000, "end": 2000}}
    assert read_filters([row], "eth2", "ingress")[0].keys == "ip_proto udp dst_port 1000-2000"
    older = rule(20, packets=9)  # a tc that does not tell hardware and software apart
    del older["options"]["actions"][0]["stats"]["hw_packets"], older["options"]["actions"][0]["stats"]["sw_packets"]
    assert read_filters([older], "eth2", "ingress")[0].hardware_packets == 9


def test_what_is_recorded_is_replayed(tmp_path: Path) -> None:
    source = build(tmp_path / "source", card_files(), {})
    answers = commands()

    def runner(words: Any) -> Outcome:
        key = " ".join(words)
        if key == "devlink -j port show":
            return Outcome(1, "", "Failed to connect to devlink Netlink")
        if answers.get(key) is None:
            raise Unknown(f"needs the command {words[0]}, which is not installed")
        return Outcome(0, answers[key] or "", "")

    asked = Asked(source, runner)
    paused: list[float] = []
    live = look(asked, 2.5, paused.append)
    assert paused == [2.5]
    asked.save(tmp_path / "copy")
    again = look(replayed(tmp_path / "copy"), 2.5, paused.append)
    assert again == live and paused == [2.5]
    assert (
        dict(live.unknown)["ports of the cards"]
        == "'devlink -j port show' failed (1): Failed to connect to devlink Netlink"
    )


def test_commands_have_a_reason_when_they_fail() -> None:
    assert run_command(["sh", "-c", "echo a; echo b >&2; exit 3"]) == Outcome(3, "a\n", "b")
    told = "Error: mlx5_core: Rule is not supported.\nWe have an error talking to the kernel\n"
    assert run_command(["sh", "-c", 'printf "$0" >&2; exit 2', told]).error == told.splitlines()[0]
    with pytest.raises(Unknown, match="needs the command no-such-tool, which is not installed"):
        run_command(["no-such-tool"])


def recorded(folder: Path, **changes: Any) -> Path:
    build(folder, card_files(), {})
    head = {"schema": "waywiser.root", "version": 1, "user": 0, "commands": commands(**changes)}
    (folder / "waywiser-root.json").write_text(json.dumps(head))
    return folder


def test_the_verb(run: Run, tmp_path: Path) -> None:
    folder = str(recorded(tmp_path / "a", rules={REP0: [rule(**SOFTWARE)]}))
    code, out, err = run("network", "--from", folder)
    assert (code, err) == (0, "")
    assert "switchdev" in out and "not_in_hw" in out and "N08 warning" in out and "remedy: add the rule" in out
    code, out, _ = run("network", "show", "--from", folder, "--json", "--strict")
    value = json.loads(out)
    assert code == 1 and [one["id"] for one in value["faults"]] == ["N08"]
    assert value["rules"][0]["where"] == "not_in_hw" and value["connections"] == {"used": 12, "most": 1000}
    code, out, _ = run("network", "--from", str(recorded(tmp_path / "b")), "--strict")
    assert code == 0 and "no fault found" in out


def test_the_verb_on_this_machine(run: Run, tmp_path: Path) -> None:
    code, out, err = run("network", "--json", "--seconds", "0", "--record", str(tmp_path / "new"))
    assert (code, err) == (0, "")
    code, again, _ = run("network", "--json", "--seconds", "0", "--from", str(tmp_path / "new"))
    assert json.loads(again) == json.loads(out)
    (tmp_path / "policy").write_text("rules: [{on: lo, do: pass}]")
    code, out, err = run("network", "apply", str(tmp_path / "policy"), "--dry-run", "--from", str(tmp_path / "new"))
    assert (code, err) == (0, "") and "tc filter add dev lo" in out
    code, _, err = run("network", "--record", str(tmp_path / "new"), "--seconds", "0")
    assert code == 2 and "is not empty" in err


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["sing"], "is none of show, prove, apply, undo"),
        (["show", "x"], "show takes no file"),
        (["apply"], "apply needs a file"),
        (["undo", "/nowhere/x"], "/nowhere/x"),
        (["apply", "x", "--record", "y"], "--record is for show"),
        (["show", "--watch"], "--watch is for prove"),
        (["apply", "x", "--from", "y"], "--from is a recorded machine"),
        (["--from", "/nowhere"], "no such folder"),
        (["--from", "/tmp"], "is no recorded machine"),
    ],
)
def test_bad_usage_is_one_line(words: list[str], why: str, run: Run) -> None:
    code, out, err = run("network", *words)
    assert (code, out, err.count("\n")) == (2, "", 1) and why in err
