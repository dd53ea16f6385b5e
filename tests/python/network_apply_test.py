"""`waywiser network apply` and `undo`: policies, a tc in memory, and a real one in a network namespace."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from made_up_network import REP0, SOFTWARE, MadeUpTc, card_files, commands, machine, rule
from verb_runs import Run

from waywiser.errors import InputError, UnavailableError
from waywiser.network.applying import Wishes, apply_policy
from waywiser.network.asking import Asked, Outcome, live_network, run_command
from waywiser.network.flower import COOKIE, entries_of
from waywiser.network.own_connection import check_own_connection
from waywiser.network.policy import Policy
from waywiser.network.policy_reader import parse_policy
from waywiser.network.traffic_control import RecordedControl, TrafficControl
from waywiser.network.undoing import read_kept, undo_policy

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


def words_of(text: str) -> list[str]:
    return [" ".join(one.add()[4:]) for one in entries_of(parse_policy(text, "p"))]


def one(does: str, match: str = "") -> list[str]:
    """The rules of tc without their place and cookies."""
    text = f"rules:\n- on: va\n  match: {{{match}}}\n  do: {does}\n"
    return [line.split(" flower ")[-1].split(" cookie ")[0] for line in words_of(text)]


@pytest.mark.parametrize(
    ("does", "match", "words"),
    [
        ("drop", "", "action drop"),
        ("{forward: vb}", "", "action mirred egress redirect dev vb"),
        ("{redirect: vb}", "to: 10.0.0.1", "dst_ip 10.0.0.1/32 action mirred ingress redirect dev vb"),
        ("{mirror: vb}", "to_mac: '02:00:00:00:00:0A'", "dst_mac 02:00:00:00:00:0a action mirred egress mirror dev vb"),
        ("{rate: 1 Gbit/s}", "", "action police rate 1000000000bit burst 1250000 mtu 524288 conform-exceed drop/pipe"),
        ("drop", "vlan: 7, from: 10.0.0.0/8", "vlan_id 7 vlan_ethtype ipv4 src_ip 10.0.0.0/8 action drop"),
        ("pass", "protocol: udp, from: '::1', to_port: 1-9", "ip_proto udp src_ip ::1/128 dst_port 1-9 action pass"),
    ],
)  # fmt: skip
def test_each_kind_of_rule_in_words_of_tc(does: str, match: str, words: str) -> None:
    assert one(does, match)[0] == words


def test_a_protocol_without_addresses_is_of_both_families() -> None:
    found = words_of("rules: [{on: va, match: {protocol: tcp}, do: drop}]")
    assert [line.split(" ")[3] for line in found] == ["ip", "ipv6"]


def test_connections_have_a_chain_of_their_own() -> None:
    found = words_of("rules: [{on: va, match: {to: 10.0.0.0/8}, do: {forward: vb, connections: any}}]")
    assert [line.split(" chain ")[1].split(" ")[0] for line in found] == ["1000", "1000", "1000", "0"]
    assert "ct_state +trk+est" in found[0] and "ct commit zone 1000 pipe" in found[1] and "action drop" in found[2]
    assert "dst_ip 10.0.0.0/8 ct_state -trk" in found[3] and "goto chain 1000" in found[3]
    closed = words_of("rules: [{on: va, match: {to: 10.0.0.0/8}, do: {forward: vb, connections: established}}]")
    assert len(closed) == 3 and not any("commit" in line for line in closed)


@pytest.mark.parametrize(("ports", "buckets"), [(2, 2), (3, 16), (4, 4), (5, 32), (16, 16)])
def test_balance_has_a_share_for_every_port_of_the_sender(ports: int, buckets: int) -> None:
    names = [f"p{index}" for index in range(ports)]
    text = f"rules: [{{on: va, match: {{protocol: udp, to: 10.0.0.0/8}}, do: {{balance: [{', '.join(names)}]}}}}]"
    found = [line.split() for line in words_of(text)]
    places = [(words[words.index("src_port") + 1], words[words.index("redirect") + 2]) for words in found]
    assert [bucket for bucket, _ in places] == [f"{index}/{buckets - 1}" for index in range(buckets)]
    shares = [sum(name == there for _, there in places) for name in names]
    assert max(shares) - min(shares) <= 1 and buckets & (buckets - 1) == 0


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "line 1: a policy needs rules"),
        ("rules: []", "rules must be a list of 1 to 200"),
        ("rules: [", "not YAML"),
        ("[1]", "a policy must be a list of NAME: VALUE"),
        ("rule: []", "'rule' is no part of a policy"),
        ("rules: [{on: va}]", "a rule needs do"),
        ("rules: [{do: drop}]", "a rule needs on"),
        ("rules: [{on: va, do: sing}]", "'sing' is none of"),
        ("rules:\n- {on: va, do: drop}\n- {on: '-x', do: drop}", "line 3: on: '-x' is no name of an interface"),
        ("rules: [{on: 'a b', do: drop}]", "is no name of an interface"),
        ("rules: [{on: va, on: vb, do: drop}]", "'on' is given twice"),
        ("rules: [{on: va, do: {drop: yes, forward: vb}}]", "forward after drop: a packet has one end"),
        ("rules: [{on: va, do: {redirect: va}}]", "never ends"),
        ("rules: [{on: va, do: {balance: [vb, vc]}}]", "match a protocol"),
        ("rules: [{on: va, match: {protocol: udp}, do: {balance: [vb]}}]", "2 ports or more"),
        ("rules: [{on: va, match: {protocol: udp, from_port: 1}, do: {balance: [vb, vc]}}]", "cannot be matched too"),
        ("rules: [{on: va, match: {to_port: 1}, do: drop}]", "ports need a protocol"),
        ("rules: [{on: va, match: {protocol: udp, to_port: 9-1}, do: drop}]", "must be a port or a range"),
        ("rules: [{on: va, match: {from: 10.0.0.1/8}, do: drop}]", "has host bits set"),
        ("rules: [{on: va, match: {from: 10.0.0.1, to: '::1'}, do: drop}]", "both be IPv4"),
        ("rules: [{on: va, match: {to: 10.0.0.1, protocol: icmpv6}, do: drop}]", "does not go with"),
        ("rules: [{on: va, match: {vlan: 4095}, do: drop}]", "from 1 to 4094"),
        ("rules: [{on: va, do: {rate: 5}}]", "such as 2.5 Gbit/s"),
        ("rules: [{on: va, match: {protocol: udp}, do: {rate: 1 Gbit/s}}]", "with one family of addresses"),
        ("rules: [{on: va, do: {rate: 1 Gbit/s, connections: any, pass: yes}}]", "rate goes without"),
        ("rules: [{on: va, do: {connections: maybe}}]", "must be any"),
        ("rules: [{on: va, do: {connections: any, drop: yes}}]", "go with pass and forward"),
        ("first_priority: 0\nrules: [{on: va, do: drop}]", "from 1 to 30000"),
    ],
)
def test_a_bad_policy_is_one_line(text: str, why: str, run: Run, tmp_path: Path) -> None:
    code, out, err = run("network", "apply", str(written(tmp_path, text)))
    assert (code, out, err.count("\n")) == (2, "", 1) and why in err and "policy.yaml" in err


def applied(tc: MadeUpTc, file: Path, *, environment: dict[str, str] | None = None, **wishes: Any) -> int:
    return apply_policy(file, Wishes(**wishes), tc.asked(file.parent), TrafficControl(tc), environment or {})


def undone(tc: MadeUpTc, file: Path, dry_run: bool = False) -> int:
    return undo_policy(file.with_name(f"{file.name}.undo.json"), dry_run, False, TrafficControl(tc))


def dumps(tc: Any, names: tuple[str, ...] = NAMES) -> list[tuple[str, str]]:
    found = [TrafficControl(tc).dump(name) for name in names]
    return [(dump.qdisc, dump.rules) for dump in found]


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


def test_what_others_did_meanwhile_stays_and_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tc, file = MadeUpTc(NAMES), written(tmp_path)
    assert applied(tc, file) == 0
    capsys.readouterr()
    tc.put("va", 3)
    assert undone(tc, file) == 1
    told = capsys.readouterr().out
    assert "va: its clsact stays" in told and "va: tc prints something else than before" in told and "vb:" not in told
    assert list(tc.rules["va"]) == [(0, 3)] and not tc.rules["vb"]


def with_card(tc: MadeUpTc, folder: Path) -> Asked:
    """Each interface has a card of its own that offloads."""
    for index, name in enumerate(NAMES):
        place = folder / f"sys/class/net/{name}/device"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(f"../0000:0{index + 1}:00.0")
    return tc.asked(folder)


def flags(tc: MadeUpTc, name: str) -> set[str]:
    words = [str(one["options"]["words"]).split()[1] for one in tc.rules[name].values()]
    return {word if word.startswith("skip") else "" for word in words}


def test_in_hardware_where_the_card_takes_all_rules(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tc, file = MadeUpTc(NAMES, refuses=lambda words: "police" in words), written(tmp_path)
    asked, control = with_card(tc, tmp_path / "machine"), TrafficControl(tc)
    before = dumps(tc)
    assert apply_policy(file, Wishes(), asked, control, {}) == 0
    assert (flags(tc, "va"), flags(tc, "vb")) == ({"skip_sw"}, {"skip_hw"})
    told = capsys.readouterr().out
    assert "# va: in hardware: hw-tc-offload is on" in told
    assert "va: 4 of 4 rules are in hardware" in told and "vb: 0 of 20 rules are in hardware" in told
    assert "vb: in software after all, the card refuses: RTNETLINK answers: Operation not supported" in told
    assert apply_policy(file, Wishes(), asked, control, {}) == 0 and "no change" in capsys.readouterr().out
    assert undone(tc, file) == 0 and dumps(tc) == before
    assert apply_policy(file, Wishes(software=True), asked, control, {}) == 0
    assert (flags(tc, "va"), flags(tc, "vb")) == ({"skip_hw"}, {"skip_hw"})


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


@pytest.mark.parametrize("harmless", ["pass", "{mirror: vb}"])
def test_what_takes_nothing_away_is_not_refused(harmless: str, tmp_path: Path) -> None:
    tc, file = MadeUpTc(NAMES), written(tmp_path, f"rules: [{{on: va, do: {harmless}}}]")
    tc.default_route = "va"
    assert applied(tc, file) == 0


@pytest.mark.parametrize("relation", [{"ifname": "va", "master": "br0"}, {"ifname": "br0", "link": "va"}])
def test_ports_of_a_bridge_and_below_a_vlan_are_own_connections_too(relation: dict[str, str], tmp_path: Path) -> None:
    answers = {
        "ip -s -j -d link show": json.dumps([{"ifname": "va"}, {"ifname": "br0"}, relation]),
        "ip -j -4 route show default": json.dumps([{"dev": "br0"}]),
        "ip -j -6 route show default": "",
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


def test_the_policy_of_the_page() -> None:
    page = (Path(__file__).parents[2] / "docs/network.md").read_text()
    policy = parse_policy(page.partition("```yaml\n")[2].partition("```")[0], "page")
    assert len(policy.rules) == 3 and len(entries_of(policy)) == 3


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


class Namespace:
    """A network namespace with veth pairs; commands run inside it."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, words: Any) -> Outcome:
        return run_command(["ip", "netns", "exec", self.name, *words])

    def run(self, *words: str) -> Outcome:
        done = self(words)
        assert done.code == 0, (words, done)
        return done


@pytest.fixture
def namespace() -> Iterator[Namespace]:
    """With rules of flower; otherwise the test skips with the reason."""
    for tool in ("ip", "tc"):
        if not shutil.which(tool):
            pytest.skip(f"{tool} is not installed")
    made = Namespace(f"waywiser-{random.SystemRandom().randrange(1 << 32):x}")
    done = run_command(["ip", "netns", "add", made.name])
    if done.code != 0:
        pytest.skip(f"no network namespace: {done.error}")
    try:
        for first, second in (NAMES[:2], NAMES[2:]):
            done = made(["ip", "link", "add", "name", first, "type", "veth", "peer", "name", second])
            if done.code != 0:
                pytest.skip(f"no veth: {done.error}")
        for name in NAMES:
            made.run("ip", "link", "set", "dev", name, "up")
        made.run("tc", "qdisc", "add", "dev", "va", "clsact")
        needed = ("action", "mirred", "egress", "redirect", "dev", "vb")
        for words in (
            ("action", "drop"),
            needed,
            ("action", "police", "rate", "1mbit", "burst", "64k"),
            ("action", "ct"),
        ):
            done = made(
                ["tc", "filter", "add", "dev", "va", "ingress", "protocol", "ip", "pref", "1", "flower", *words]
            )
            if done.code != 0:
                pytest.skip(f"this kernel has no rules of flower with {words[1]}: {done.error}")
            made.run("tc", "filter", "del", "dev", "va", "ingress")
        made.run("tc", "qdisc", "del", "dev", "va", "clsact")
        yield made
    finally:
        subprocess.run(["ip", "netns", "del", made.name], check=False, timeout=60)


def test_a_real_tc_applies_and_undoes(namespace: Namespace, tmp_path: Path) -> None:
    namespace.run("tc", "qdisc", "add", "dev", "vb", "clsact")
    namespace.run(
        *[
            "tc",
            "filter",
            "add",
            "dev",
            "vb",
            "ingress",
            "protocol",
            "ip",
            "pref",
            "5",
            "flower",
            "dst_ip",
            "10.9.0.0/16",
            "action",
            "drop",
        ]
    )
    asked, control = Asked(live_network().root, namespace), TrafficControl(namespace)
    for number, text in enumerate((POLICY, *(random_policy(random.Random(seed)) for seed in range(6)))):
        file = tmp_path / f"{number}.yaml"
        file.write_text(text)
        before = dumps(namespace)
        assert apply_policy(file, Wishes(), asked, control, {}) == 0
        after = dumps(namespace)
        assert sum(rows.count(COOKIE) > 0 for _, rows in after) > 0
        assert apply_policy(file, Wishes(), asked, control, {}) == 0 and dumps(namespace) == after
        assert undo_policy(tmp_path / f"{number}.yaml.undo.json", False, False, control) == 0
        assert dumps(namespace) == before
