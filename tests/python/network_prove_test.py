"""`waywiser network prove`: packets that fit rules, verdicts from counters. The cards are made up."""

from __future__ import annotations

import ipaddress
import json
import struct
from pathlib import Path
from typing import Any

import pytest
from made_up_network import CT, GUEST, PF, REP0, UPLINK, commands, machine, proof, prove_files, rule
from verb_runs import Run

from waywiser.errors import InputError
from waywiser.network.filters import Filter, read_filters
from waywiser.network.judging import VERDICTS, Counted, judge
from waywiser.network.packets import packet_for
from waywiser.network.proof_shown import proofs_json
from waywiser.network.proving import Proof, prove

SKIP_SW = rule(packets=0)
START = (0, 0, 0, 0)


def flower(protocol: str = "ip", kind: str = "flower", **keys: Any) -> Filter:
    row = {**rule(), "protocol": protocol, "kind": kind}
    row["options"] = {**row["options"], "keys": keys}
    return read_filters([row], REP0, "ingress")[0]


PACKET = packet_for(flower(dst_ip="10.1.0.0/16")).hex()


def proved(folder: Path, looks: list[Any], before: Any = SKIP_SW, **more: Any) -> Proof:
    asked = machine(folder, proof(before, PACKET, looks, **more), prove_files())
    (found,) = prove(asked, "", False, 1.0, lambda _: pytest.fail("a recorded machine is not waited for"))[1]
    return found


@pytest.mark.parametrize(
    ("looks", "verdict", "why"),
    [
        ([(1000, 0, 1000, 0)], "hardware", "the card counts 1000 packets, the kernel 0, and the processors saw 0 of"),
        # The card counts once a second:
        ([(0, 0, 0, 0), (0, 0, 1000, 0), (1000, 0, 1000, 0)], "hardware", "1000 packets"),
        ([(0, 1000, 1000, 1000)], "software", "the kernel 1000"),
        ([(0, 1000, 1000, None)], "software", "1000 arrived"),
        ([(400, 600, 1000, 600)], "both", "the card counts 400 packets, the kernel 600"),
        ([(0, 0, 1000, 0)] * 4, "neither", "neither the card nor the kernel counts them"),
        ([(0, 0, 3, 0)] * 4, "unknown", "of 1000 packets 3 arrived"),
        ([(500, 0, 1000, 0)] * 4, "unknown", "the rule counted 500"),
        ([(1000, 0, 1000, 1000)], "disagree", "the processors saw 1000 of 1000"),
        ([(1000, 0, 0, 0)] * 4, "disagree", "only 0 arrived"),
        ([(1000, 0, 9000, 8000)], "unknown", "others send too"),
        ([(1000, 0, 1000, None)], "unknown", "the third counter is missing"),
    ],
)
def test_three_counters_decide(looks: list[Any], verdict: str, why: str, tmp_path: Path) -> None:
    found = proved(tmp_path, looks)
    assert (found.verdict, found.sender) == (verdict, GUEST) and why in found.why


def test_each_of_the_three_counters_can_refuse_hardware() -> None:
    good = {"sent": 1000, "hardware": 1000, "software": 0, "arrived": 1000, "processors": 0}
    assert judge(Counted(**good))[0] == "hardware"
    for name, wrong in (
        ("hardware", 0),
        ("software", 1000),
        ("arrived", 0),
        ("processors", 1000),
        ("processors", None),
    ):
        verdict = judge(Counted(**{**good, name: wrong}))[0]
        assert verdict != "hardware" and verdict in VERDICTS, name


def test_without_rights_it_is_unknown(tmp_path: Path) -> None:
    why = "'send packets from eth4' failed (1): needs root (CAP_NET_RAW)"
    found = proved(tmp_path, [], sent=why)
    assert (found.verdict, found.why, found.counted) == ("unknown", why, None)


def test_an_older_ip_does_not_tell_what_the_processors_saw(tmp_path: Path) -> None:
    assert "the third counter is missing" in proved(tmp_path, [(1000, 0, 1000, 0)], cpu_hit=False).why


def test_counters_begin_where_they_were(tmp_path: Path) -> None:
    assert proved(tmp_path, [(1007, 0, 1000, 0)], rule(packets=7)).verdict == "hardware"


def test_who_sends(tmp_path: Path) -> None:
    answers = commands({UPLINK: [rule()]})
    (found,) = prove(machine(tmp_path / "1", answers, prove_files()), UPLINK, False, 1.0)[1]
    assert (found.verdict, found.why[:37]) == ("unknown", "nothing on this machine sends into it")
    (found,) = prove(machine(tmp_path / "2", commands()), REP0, False, 1.0)[1]  # without its virtual function
    assert found.verdict == "unknown" and "virtual function 0 has no interface in this namespace" in found.why
    with pytest.raises(InputError, match="lo: has no rules"):
        prove(machine(tmp_path / "3", commands()), "lo", False, 1.0)


def test_watching_sends_nothing(tmp_path: Path) -> None:
    answers = commands({REP0: [SKIP_SW]})
    for mark, packets in ((" # watch", 5), (" # watched", 805)):
        answers[f"tc -s -j filter show dev {REP0} ingress{mark}"] = json.dumps([rule(packets=packets)])
        told = {"stats64": {"rx": {"packets": packets}, "tx": {"packets": 0}}, "ifname": REP0}
        answers[f"ip -s -j -d link show{mark}"] = json.dumps([told])
        quiet = {"stats64": {"rx": {"packets": 3}}}
        answers[f"ip -j stats show dev {REP0} group offload subgroup cpu_hit{mark}"] = json.dumps([quiet])
    (found,) = prove(machine(tmp_path, answers, prove_files()), REP0, True, 1.0)[1]
    assert (found.verdict, found.counted) == ("hardware", Counted(0, 800, 0, 800, 0))
    assert judge(Counted(0, 50, 0, 50, 0))[0] == "unknown"


@pytest.mark.parametrize("text", ["{", "[1, null, {}]", '"x"', ""])
@pytest.mark.parametrize("key", list(proof(SKIP_SW, PACKET, [START] * 4)))
def test_strange_answers_are_never_hardware(key: str, text: str, tmp_path: Path) -> None:
    answers = {**proof(SKIP_SW, PACKET, [(1000, 0, 1000, 1000)] * 4), key: text}
    assert all(one.verdict != "hardware" for one in prove(machine(tmp_path, answers, prove_files()), "", False, 1.0)[1])


def heads(frame: bytes, tagged: bool = False) -> tuple[int, bytes]:
    """EtherType, and what follows it."""
    start = 16 if tagged else 12
    return struct.unpack_from("!H", frame, start)[0], frame[start + 2 :]


def test_a_packet_fits_its_rule() -> None:
    frame = packet_for(
        flower(src_mac="02:00:00:00:00:05", dst_ip="10.1.0.0/16", ip_proto="udp", dst_port={"start": 1000, "end": 2000})
    )
    kind, datagram = heads(frame)
    assert frame[6:12].hex(":") == "02:00:00:00:00:05" and kind == 0x0800 and len(frame) >= 60
    assert (datagram[9], ipaddress.ip_address(datagram[16:20])) == (17, ipaddress.ip_address("10.1.0.1"))
    assert struct.unpack_from("!H", datagram, 22) == (1000,)
    frame = packet_for(flower("802.1Q", vlan_id=5, vlan_ethtype="ipv6", ip_proto="tcp", src_port=1, src_port_mask="3"))
    kind, datagram = heads(frame, tagged=True)
    assert struct.unpack_from("!HH", frame, 12) == (0x8100, 5) and kind == 0x86DD
    assert datagram[6] == 6 and struct.unpack_from("!H", datagram, 40) == (1,)
    assert heads(packet_for(flower("all", kind="matchall")))[0] == 0x0800
    assert heads(packet_for(flower(ct_state="-trk", ip_proto="sctp")))[1][9] == 132
    by_open_vswitch = flower("ipv6", dst_mac="33:33:00:00:00:02", eth_type="ipv6", ip_flags={"frag": False})
    assert by_open_vswitch.keys == "dst_mac 33:33:00:00:00:02 ip_flags nofrag"
    assert heads(packet_for(by_open_vswitch))[0] == 0x86DD


@pytest.mark.parametrize("protocol", ["udp", "tcp", "icmp"])
@pytest.mark.parametrize("family", ["ip", "ipv6"])
def test_checksums_are_right(protocol: str, family: str) -> None:
    def total(data: bytes) -> int:
        value = sum(struct.unpack(f"!{len(data) // 2}H", data[: len(data) // 2 * 2]))
        while value >> 16:
            value = (value & 0xFFFF) + (value >> 16)
        return value

    word = "icmpv6" if (protocol, family) == ("icmp", "ipv6") else protocol
    datagram = heads(packet_for(flower(family, ip_proto=word)))[1]
    size = struct.unpack_from("!H", datagram, 2 if family == "ip" else 4)[0]
    if family == "ip":
        assert total(datagram[:20]) == 0xFFFF
        inner, ends, number = datagram[20:size], datagram[12:20], datagram[9]
    else:
        inner, ends, number = datagram[40 : 40 + size], datagram[8:40], datagram[6]
    above = b"" if word == "icmp" else ends + struct.pack("!II", len(inner), number)
    assert total(above + inner) == 0xFFFF


@pytest.mark.parametrize(
    ("one", "why"),
    [
        (flower(tcp_flags="0x2/2"), "tcp_flags"),
        (flower(ct_state="+trk+est"), "ct_state"),
        (flower(ip_flags={"frag": True, "firstfrag": False}), "ip_flags"),
        (flower("arp", arp_op="request"), "arp_op"),
        (flower("arp"), "protocol arp"),
        (flower(kind="u32"), "rules of u32"),
        (flower(dst_ip="x"), "what tc prints of its match"),
        (flower(ip_proto="udp", dst_port={"strange": 1}), "what tc prints of its match"),
        (flower(ip_proto="999"), "what tc prints of its match"),
        (flower(src_ip="a b"), "no packet is made for"),
    ],
)
def test_what_no_packet_is_made_for(one: Filter, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        packet_for(one)


def recorded(folder: Path, looks: list[Any]) -> str:
    answers = proof(SKIP_SW, PACKET, looks)
    machine(folder, answers, prove_files())
    head = {"schema": "waywiser.root", "version": 1, "user": 0, "commands": answers}
    (folder / "waywiser-root.json").write_text(json.dumps(head))
    return str(folder)


def test_the_verb(run: Run, tmp_path: Path) -> None:
    good, bad = recorded(tmp_path / "a", [(1000, 0, 1000, 0)]), recorded(tmp_path / "b", [(0, 0, 1000, 0)] * 4)
    code, out, err = run("network", "prove", "--from", good, "--strict")
    assert (code, err) == (0, "") and "Recorded at made-up" in out and "pref 10: hardware" in out
    code, out, _ = run("network", "prove", REP0, "--from", bad, "--strict", "--json")
    value = json.loads(out)
    assert code == 1 and value["recorded"] and value["proofs"][0]["verdict"] == "neither"
    assert run("network", "prove", "--from", bad)[0] == 0
    code, _, err = run("network", "prove", "lo", "--from", good)
    assert (code, err.count("\n")) == (2, 1) and "lo: has no rules" in err


def test_what_could_not_be_looked_at_is_unknown_also_without_rules(run: Run, tmp_path: Path) -> None:
    answers = {key: None if key.startswith("tc ") else text for key, text in commands().items()}
    machine(tmp_path, answers, prove_files())
    head = {"schema": "waywiser.root", "version": 1, "user": 0, "commands": answers}
    (tmp_path / "waywiser-root.json").write_text(json.dumps(head))
    code, out, _ = run("network", "prove", "--from", str(tmp_path), "--strict", "--json")
    value = json.loads(out)
    assert (code, value["proofs"]) == (1, []) and value["unknown"][0]["what"] == "rules"
    assert "unknown: rules: " in run("network", "prove", "--from", str(tmp_path))[1]


def test_rules_that_others_reach(tmp_path: Path) -> None:
    later = {**rule(11, actions=[CT]), "chain": 4}
    asked = machine(tmp_path, commands({REP0: [later]}), prove_files())
    steering, (found,) = prove(asked, REP0, False, 1.0)
    assert (found.verdict, found.why) == ("unknown", "its packets come from a rule of chain 0: see there")
    assert json.loads(proofs_json(steering, [found], False))["proofs"][0]["counted"] is None
    assert steering.cards[0].address == PF
