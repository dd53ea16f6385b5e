"""`waywiser network` in a guest: its kernel has rules of flower, namespaces and Open vSwitch; all in software."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest
from group_over_rdma_test import ROOT
from rdma_testbed.guest import Command, Guest
from rdma_testbed.two_guests import TwoGuests

from waywiser.network.filters import Filter
from waywiser.network.packets import packet_for

BASE = {"PYTHONPATH": str(ROOT / "python"), "PYTHONDONTWRITEBYTECODE": "1"}
NETWORK = [sys.executable, "-c", "from waywiser.cli import main; main()", "network"]
SENDER = ROOT / "python/waywiser/network/sending.py"
FILES = ("network_namespaces_test.py", "network_open_vswitch_test.py")
# The ports v1 and v2 of a bridge, whose other ends send. Rules go into tc, in software: there is no card.
SWITCH = """
set -e
export PATH=$PATH:/usr/sbin:/usr/lib/openvswitch-switch
mkdir -p /run/openvswitch /var/log/openvswitch
cd /run/openvswitch
ovsdb-tool create conf.db /usr/share/openvswitch/vswitch.ovsschema
ovsdb-server --remote=punix:db.sock --pidfile --detach --log-file=/tmp/ovsdb.log conf.db
ovs-vsctl --timeout=60 --no-wait init
ovs-vsctl --timeout=60 --no-wait set Open_vSwitch . other_config:hw-offload=true other_config:tc-policy=skip_hw \\
  other_config:max-idle=3600000
ovs-vswitchd --pidfile --detach --log-file=/tmp/vswitchd.log
ovs-vsctl --timeout=60 add-br br0
for n in 1 2; do
  ip link add v$n type veth peer name e$n
  ip link set v$n up; ip link set e$n up
  ovs-vsctl --timeout=60 add-port br0 v$n
done
ovs-ofctl --timeout=60 add-flow br0 'in_port=v1 actions=output:v2'
"""
# Until the switch has made a rule of the packets of e1.
LEARN = """
for attempt in $(seq 20); do
  "$1" -I "$2" e1 10 "$3"
  tc filter show dev v1 ingress | grep -q skip_hw && exit 0
done
ovs-appctl dpctl/dump-flows >&2
tail -n 20 /tmp/vswitchd.log >&2
exit 1
"""
END = """
export PATH=$PATH:/usr/sbin
ovs-vsctl --timeout=60 del-br br0; ip link del v1; ip link del v2
for name in ovs-vswitchd ovsdb-server; do kill $(cat /run/openvswitch/$name.pid); done
"""


def network(guest: Guest, *words: str) -> Command:
    return guest.start([*NETWORK, *words], BASE, seconds=200).wait()


def value(done: Command) -> Any:
    assert done.code == 0, done.errors
    return json.loads("\n".join(done.lines))


@pytest.mark.timeout(1200)
def test_policies_and_proofs_with_a_real_tc_and_a_real_database(guests: TwoGuests) -> None:
    files = [str(ROOT / "tests/python" / name) for name in FILES]
    # The clock of a guest may run faster than ours: no time limit of its own.
    words = [sys.executable, "-m", "pytest", "-vv", "-rs", "-p", "no:cacheprovider", "--timeout", "0", *files]
    words += ["-k", "not seed"]  # random policies take minutes here
    done = guests.guests[0].start(words, BASE, seconds=20_000).wait()
    told = "\n".join(done.lines)
    print(told)
    assert done.code == 0 and "passed" in told and "SKIPPED" not in told, (told, done.errors)


@pytest.mark.timeout(1200)
def test_a_switch_whose_rules_are_in_tc(guests: TwoGuests) -> None:
    guest = guests.guests[0]
    guest.run(["/bin/sh", "-c", SWITCH], seconds=300)
    try:
        fits = Filter("v1", "ingress", 0, 1, "ip", "flower", "1", "", (), False, False, False, 0, 0, 0)
        guest.run(["/bin/sh", "-c", LEARN, "sh", sys.executable, SENDER, packet_for(fits).hex()], seconds=900)
        seen = value(network(guest, "--json"))
        told = {key: seen["open_vswitch"][key] for key in ("there", "kind", "offload", "bridges")}
        assert told == {"there": True, "kind": "kernel", "offload": True, "bridges": ["br0"]} and not seen["faults"]
        assert "v1" in {rule["interface"] for rule in seen["rules"] if rule["where"] == "not_in_hw skip_hw"}, seen
        proofs = value(network(guest, "prove", "v1", "--json"))["proofs"]
        assert {(one["verdict"], one["sender"]) for one in proofs} >= {("software", "e1")}, proofs
    finally:
        guest.run(["/bin/sh", "-c", END], seconds=200)
