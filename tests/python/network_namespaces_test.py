"""`waywiser network apply`, `undo` and `prove` with a real tc in a network namespace."""

from __future__ import annotations

import random
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from network_policies import NAMES, POLICY, dumps, random_policy

from waywiser.network.applying import Wishes, apply_policy
from waywiser.network.asking import Asked, Outcome, live_network, run_command
from waywiser.network.flower import COOKIE
from waywiser.network.proving import prove
from waywiser.network.traffic_control import TrafficControl
from waywiser.network.undoing import undo_policy


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


POLICIES = {"page": POLICY, **{f"seed{seed}": random_policy(random.Random(seed)) for seed in range(6)}}


@pytest.mark.parametrize("name", POLICIES)
def test_a_real_tc_applies_and_undoes(name: str, namespace: Namespace, tmp_path: Path) -> None:
    """Beside a rule of others."""
    namespace.run("tc", "qdisc", "add", "dev", "vb", "clsact")
    theirs = "tc filter add dev vb ingress protocol ip pref 5 flower dst_ip 10.9.0.0/16 action drop"
    namespace.run(*theirs.split())
    asked, control = Asked(live_network().root, namespace), TrafficControl(namespace)
    file = tmp_path / "policy.yaml"
    file.write_text(POLICIES[name])
    before = dumps(namespace)
    assert apply_policy(file, Wishes(), asked, control, {}) == 0
    after = dumps(namespace)
    assert sum(rows.count(COOKIE) > 0 for _, rows in after) > 0
    assert apply_policy(file, Wishes(), asked, control, {}) == 0 and dumps(namespace) == after
    assert undo_policy(tmp_path / "policy.yaml.undo.json", False, False, control) == 0
    assert dumps(namespace) == before


RULES = (
    ("10", "ip", "flower ip_proto udp dst_port 1000-2000 dst_ip 10.1.0.0/16 action drop"),
    ("11", "ipv6", "flower ip_proto tcp dst_port 80 action mirred egress redirect dev vc"),
    ("12", "802.1Q", "flower vlan_id 5 vlan_ethtype ipv4 action pass"),
    ("13", "all", "matchall action pass"),
    ("14", "ip", "flower ip_proto icmp action pass"),
)


def test_real_packets_go_by_software(namespace: Namespace) -> None:
    """The packets come from the same namespace, then from another one, and nothing is left behind."""
    namespace.run("tc", "qdisc", "add", "dev", "va", "clsact")
    for pref, protocol, words in RULES:
        namespace.run(*f"tc filter add dev va ingress protocol {protocol} pref {pref} {words}".split())
    before = namespace.run("ip", "-j", "link", "show").output, namespace.run("tc", "-j", "qdisc", "show").output
    asked = Asked(live_network().root, namespace)
    proofs = prove(asked, "va", False, 1.0, lambda _: None)[1]
    assert [(one.rule.pref, one.verdict) for one in proofs] == [
        (10, "software"), (11, "software"), (12, "software"), (13, "software"), (14, "neither"),
    ]  # fmt: skip
    assert "va ingress pref 13 takes them first" in proofs[-1].why
    assert (
        namespace.run("ip", "-j", "link", "show").output,
        namespace.run("tc", "-j", "qdisc", "show").output,
    ) == before
    other = Namespace(f"{namespace.name}-b")
    assert run_command(["ip", "netns", "add", other.name]).code == 0
    try:
        namespace.run("ip", "link", "set", "dev", NAMES[1], "netns", other.name)
        other.run("ip", "link", "set", "dev", NAMES[1], "up")
        asked = Asked(live_network().root, namespace)
        found = prove(asked, "va", False, 1.0, lambda _: None)[1]
        assert [one.verdict for one in found[2:]] == ["software", "software", "neither"]
    finally:
        subprocess.run(["ip", "netns", "del", other.name], check=False, timeout=60)


def test_a_user_who_may_not_send_gets_unknown(namespace: Namespace) -> None:
    namespace.run("tc", "qdisc", "add", "dev", "va", "clsact")
    words = "tc filter add dev va ingress protocol all pref 1 matchall action pass"
    namespace.run(*words.split())

    def without_rights(words: Any) -> Outcome:
        drop = ("setpriv", "--bounding-set=-net_raw", "--inh-caps=-net_raw") if "-I" in words else ()
        return namespace([*drop, *words])

    if not shutil.which("setpriv"):
        pytest.skip("setpriv is not installed")
    (found,) = prove(Asked(live_network().root, without_rights), "va", False, 1.0)[1]
    assert (found.verdict, found.counted) == ("unknown", None) and "needs root (CAP_NET_RAW)" in found.why
