"""Policies of `waywiser network apply`: their words, their mistakes, their rules of tc."""

from __future__ import annotations

from pathlib import Path

import pytest
from network_policies import written
from verb_runs import Run

from waywiser.network.flower import entries_of
from waywiser.network.policy_reader import parse_policy


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


def test_the_policy_of_the_page() -> None:
    page = (Path(__file__).parents[2] / "docs/network.md").read_text()
    policy = parse_policy(page.partition("```yaml\n")[2].partition("```")[0], "page")
    assert len(policy.rules) == 3 and len(entries_of(policy)) == 3
