"""`waywiser network apply` and `undo` with a real tc in a network namespace."""

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
