"""`waywiser network apply` and `undo` with a tc in memory: a policy, and random ones."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from doctor_machines import build
from made_up_network import REP0, SOFTWARE, MadeUpTc, card_files, commands, machine, rule
from network_policies import NAMES, POLICY, applied, dumps, flags, random_policy, undone, with_card, written

from waywiser.errors import InputError, UnavailableError
from waywiser.network.applying import Wishes, apply_policy
from waywiser.network.asking import Asked
from waywiser.network.flower import COOKIE, entries_of
from waywiser.network.own_connection import check_own_connection, own_environment
from waywiser.network.policy import Policy
from waywiser.network.policy_reader import parse_policy
from waywiser.network.traffic_control import RecordedControl, TrafficControl
from waywiser.network.undoing import read_kept, undo_policy


def test_applied_twice_and_undone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tc, file = MadeUpTc(NAMES), written(tmp_path)
    tc.put("vb", 5)
    before = dumps(tc)
    assert applied(tc, file, dry_run=True) == 0 and dumps(tc) == before
    printed = capsys.readouterr().out
    assert "tc qdisc add dev va clsact" in printed and "qdisc add dev vb" not in printed
    assert applied(tc, file) == 0
    assert capsys.readouterr().out.startswith(printed)
    after, changes = dumps(tc), tc.changes
    assert after != before and applied(tc, file) == 0
    assert "no change: all rules are there" in capsys.readouterr().out
    assert (dumps(tc), tc.changes) == (after, changes)
    assert undone(tc, file, dry_run=True) == 0 and dumps(tc) == after
    assert undone(tc, file) == 0 and dumps(tc) == before
    assert "the same, byte for byte" in capsys.readouterr().out
    assert undone(tc, file) == 0 and "nothing to undo" in capsys.readouterr().out
    with pytest.raises(InputError, match=r"is the policy; undo needs what apply wrote: .*policy.yaml.undo.json"):
        undo_policy(file, False, False, TrafficControl(tc))


def test_what_others_did_meanwhile_stays_and_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tc, file = MadeUpTc(NAMES), written(tmp_path)
    assert applied(tc, file) == 0
    capsys.readouterr()
    tc.put("va", 3)
    assert undone(tc, file) == 1
    told = capsys.readouterr().out
    assert "va: its clsact stays" in told and "va: tc prints something else than before" in told and "vb:" not in told
    assert list(tc.rules["va"]) == [(0, 3)] and not tc.rules["vb"]


def test_in_hardware_where_the_card_takes_all_rules(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tc, file = MadeUpTc(NAMES, refuses=lambda words: "police" in words), written(tmp_path)
    asked, control = with_card(tc, tmp_path / "machine"), TrafficControl(tc)
    before = dumps(tc)
    assert apply_policy(file, Wishes(), asked, control, {}) == 0
    assert (flags(tc, "va"), flags(tc, "vb")) == ({"skip_sw"}, {"skip_hw"})
    told = capsys.readouterr().out
    assert "# va: in hardware: hw-tc-offload is on" in told
    assert "va: 4 of 4 rules are in hardware" in told and "vb: 0 of 20 rules are in hardware" in told
    assert "vb: in software after all, the card refuses: 1 of 20 rules" in told
    assert apply_policy(file, Wishes(), asked, control, {}) == 0 and "no change" in capsys.readouterr().out
    assert undone(tc, file) == 0 and dumps(tc) == before
    assert apply_policy(file, Wishes(software=True), asked, control, {}) == 0
    assert (flags(tc, "va"), flags(tc, "vb")) == ({"skip_hw"}, {"skip_hw"})


def test_rules_that_track_connections_are_in_software_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tc, file = MadeUpTc(NAMES), written(tmp_path)
    asked, control = with_card(tc, tmp_path / "machine"), TrafficControl(tc)
    before = dumps(tc)
    assert apply_policy(file, Wishes(), asked, control, {}) == 0
    assert (flags(tc, "va"), flags(tc, "vb")) == ({"skip_sw"}, {""})
    told = capsys.readouterr().out
    assert "# vb: in hardware and in software, which tracks new connections" in told
    assert "vb: 20 of 20 rules are in hardware" in told and "after all" not in told
    assert "skip_sw" not in "".join(line for line in told.splitlines() if " ct " in line)
    assert apply_policy(file, Wishes(), asked, control, {}) == 0 and "no change" in capsys.readouterr().out
    assert undone(tc, file) == 0 and dumps(tc) == before


@pytest.mark.parametrize("breaks", range(0, 25, 3))
def test_a_failure_leaves_nothing(breaks: int, tmp_path: Path) -> None:
    tc, file = MadeUpTc(NAMES), written(tmp_path)
    tc.put("vb", 5)
    before, tc.breaks = dumps(tc), breaks
    with pytest.raises(UnavailableError, match="No space left on device"):
        applied(tc, file)
    assert dumps(tc) == before


def test_rules_in_the_way_are_not_touched(tmp_path: Path) -> None:
    tc, file = MadeUpTc(NAMES), written(tmp_path)
    tc.put("va", 1001)
    with pytest.raises(InputError, match="choose another first_priority"):
        applied(tc, file)
    file.write_text(f"first_priority: 2000\n{POLICY}")
    assert applied(tc, file) == 0
    other = tmp_path / "other.yaml"
    other.write_text("first_priority: 2000\n" + POLICY.replace("do: drop", "do: pass"))
    with pytest.raises(InputError, match="rules of another policy"):
        applied(tc, other)
    tc.rules["vb"].popitem()
    with pytest.raises(InputError, match=r"only .* are there"):
        applied(tc, file)


def test_without_ethtool_nobody_claims_to_know_where(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tc, file = MadeUpTc(NAMES), written(tmp_path)
    asked = with_card(tc, tmp_path / "machine")
    asked = Asked(asked.root, lambda words: tc(["no-tool"] if words[0] == "ethtool" else words))
    assert apply_policy(file, Wishes(), asked, TrafficControl(tc), {}) == 0
    told = capsys.readouterr().out
    assert "# va: left to the kernel: it is not known" in told and "in software" not in told
    assert flags(tc, "va") == {""}


def test_an_interface_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="line 2: there is no interface va"):
        applied(MadeUpTc(("vb", "vc", "vd")), written(tmp_path))


def test_the_own_connection_is_not_cut_off(tmp_path: Path) -> None:
    tc, file = MadeUpTc(NAMES), written(tmp_path)
    tc.default_route = "vb"
    with pytest.raises(InputError, match=r"line 11: vb carries the default route: .* --force"):
        applied(tc, file)
    assert tc.changes == 0
    assert applied(tc, file, force=True) == 0 and undone(tc, file) == 0
    tc.default_route = ""
    session = {"SSH_CONNECTION": "198.51.100.7 51234 192.0.2.1 22"}  # comes in at va
    assert applied(tc, file, environment=session) == 0 and undone(tc, file) == 0
    file.write_text("rules: [{on: va, match: {protocol: tcp, to_port: 1-99}, do: drop}]")
    with pytest.raises(InputError, match="your session by ssh comes in at va"):
        applied(tc, file, environment=session)


def test_a_session_is_known_also_under_sudo(tmp_path: Path) -> None:
    """The shell above sudo has it; sudo has taken it away; nobody else's is taken."""
    session, files = "198.51.100.7 51234 192.0.2.1 22", {}
    for number, above, told in ((40, 1, f"A=1\0SSH_CONNECTION={session}\0"), (50, 40, "A=1\0"), (60, 50, "")):
        files |= {f"/proc/{number}/stat": f"{number} (a ) b) S {above} 1", f"/proc/{number}/environ": told}
    files |= {"/proc/70/stat": "70 (c) S 1 1", "/proc/70/environ": "SSH_CONNECTION=x\0"}
    root = build(tmp_path, files, {})
    assert own_environment({"B": "2"}, root, 60) == {"B": "2", "SSH_CONNECTION": session}
    assert own_environment({"SSH_CONNECTION": "mine"}, root, 60) == {"SSH_CONNECTION": "mine"}
    assert own_environment({}, root, 41) == {} == own_environment({}, build(tmp_path / "none", {}, {}), 60)


def test_the_loopback_is_not_cut_off(tmp_path: Path) -> None:
    tc, file = MadeUpTc(("lo",)), written(tmp_path, "rules: [{on: lo, do: drop}]")
    with pytest.raises(InputError, match=r"lo carries what programs of this machine say to each other: .* --force"):
        applied(tc, file)


def test_what_undo_needs_is_not_overwritten(tmp_path: Path) -> None:
    """The policy now names another interface; or the file of undo is something else."""
    tc, file = MadeUpTc(NAMES), written(tmp_path, "rules: [{on: va, do: drop}]")
    before = dumps(tc)
    assert applied(tc, file) == 0
    written(tmp_path, "rules: [{on: vb, do: drop}]")
    with pytest.raises(InputError, match=r"undo.json: its rules are still at va: `waywiser network undo .*` first"):
        applied(tc, file)
    assert undone(tc, file) == 0 and dumps(tc) == before and applied(tc, file) == 0 and undone(tc, file) == 0
    with pytest.raises(InputError, match=r"policy.yaml: not valid JSON"):
        applied(tc, file, undo=file)
    assert file.read_text() == "rules: [{on: vb, do: drop}]" and dumps(tc) == before


@pytest.mark.parametrize("harmless", ["pass", "{mirror: vb}"])
def test_what_takes_nothing_away_is_not_refused(harmless: str, tmp_path: Path) -> None:
    tc, file = MadeUpTc(NAMES), written(tmp_path, f"rules: [{{on: va, do: {harmless}}}]")
    tc.default_route = "va"
    assert applied(tc, file) == 0


@pytest.mark.parametrize("relation", [{"ifname": "va", "master": "br0"}, {"ifname": "br0", "link": "va"}])
def test_ports_of_a_bridge_and_below_a_vlan_are_own_connections_too(relation: dict[str, str], tmp_path: Path) -> None:
    answers = {
        "ip -s -j -d link show": json.dumps([{"ifname": "va"}, {"ifname": "br0"}, relation]),
        "ip -j -4 route show table all default": json.dumps([{"dev": "br0"}]),
        "ip -j -6 route show table all default": "",
    }
    policy: Policy = parse_policy("rules: [{on: va, do: drop}]", "p")
    with pytest.raises(InputError, match="va carries the default route"):
        check_own_connection(policy, machine(tmp_path, answers), {})


def test_a_recorded_machine_says_what_would_be_done(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = machine(tmp_path / "m", commands(rules={REP0: [rule(**SOFTWARE)]}), card_files())
    file = written(tmp_path, f"rules: [{{on: {REP0}, match: {{to: 10.0.0.1}}, do: drop}}]")
    assert apply_policy(file, Wishes(dry_run=True, force=True), asked, RecordedControl(asked), {}) == 0
    told = capsys.readouterr().out
    assert f"# {REP0}: in hardware" in told and "flower skip_sw dst_ip 10.0.0.1/32 action drop" in told
    with pytest.raises(UnavailableError, match="a recorded machine is not changed"):
        apply_policy(file, Wishes(force=True), asked, RecordedControl(asked), {})


@pytest.mark.parametrize(
    "spoil",
    [
        lambda value: value["rules"][0].update(cookie="00"),
        lambda value: value["rules"][0].update(interface="-x"),
        lambda value: value["rules"][0].update(protocol="x"),
        lambda value: value["rules"][0].update(pref=0),
        lambda value: value.update(before={}),
        lambda value: value["before"]["va"].update(qdisc=1),
        lambda value: value.update(version=2),
    ],
)
def test_a_spoilt_file_of_undo_is_refused(spoil: Any, tmp_path: Path) -> None:
    tc, file = MadeUpTc(NAMES), written(tmp_path)
    applied(tc, file)
    kept = tmp_path / "policy.yaml.undo.json"
    value = json.loads(kept.read_text())
    spoil(value)
    kept.write_text(json.dumps(value))
    with pytest.raises(InputError, match=r"undo\.json"):
        read_kept(kept)


def apply_and_undo(seed: int, folder: Path) -> None:
    """Beside rules of others, with a card that refuses some: all there after apply, nothing of ours after undo."""
    chance = random.Random(seed)
    word = chance.choice(("police", "ct", "mirror", "nothing"))
    tc = MadeUpTc(NAMES, refuses=lambda words: f" {word}" in words)
    for _ in range(chance.randint(0, 3)):
        tc.put(chance.choice(NAMES), chance.randint(1, 99), chance.choice((0, 0, 7)))
    asked, file = with_card(tc, folder / "machine") if chance.random() < 0.5 else tc.asked(folder), written(folder)
    file.write_text(random_policy(chance))
    before = dumps(tc)
    apply_policy(file, Wishes(), asked, TrafficControl(tc), {})
    entries = entries_of(parse_policy(file.read_text(), "p"))
    there = [one for rows in tc.rules.values() for one in rows.values() if COOKIE in json.dumps(one)]
    assert len(there) == len(entries) and len({(one.interface, one.chain, one.pref) for one in entries}) == len(entries)
    after, changes = dumps(tc), tc.changes
    apply_policy(file, Wishes(), asked, TrafficControl(tc), {})
    assert (dumps(tc), tc.changes) == (after, changes)
    assert undone(tc, file) == 0 and dumps(tc) == before


@pytest.mark.parametrize("seed", range(20))
def test_random_policies_are_applied_and_undone(seed: int, tmp_path: Path) -> None:
    apply_and_undo(seed, tmp_path)


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("first", range(100, 1100, 100))
def test_a_thousand_random_policies(first: int, tmp_path: Path) -> None:
    for seed in range(first, first + 100):
        folder = tmp_path / str(seed)
        folder.mkdir()
        apply_and_undo(seed, folder)
