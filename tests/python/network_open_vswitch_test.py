"""What `waywiser network` says of a real Open vSwitch: its database without a running switch; a recorded machine."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from verb_runs import Run

from waywiser.network.asking import live_network, run_command
from waywiser.network.open_vswitch import OpenVSwitch, read_open_vswitch

SECONDS = 30


def said(*words: str) -> str:
    done = run_command(words)
    assert done.code == 0, (words, done)
    return done.output


def schema() -> str:
    """Beside the programs, or where packages put it."""
    program = shutil.which("ovsdb-server") or ""
    places = (Path(program).parents[1] / "share/openvswitch", Path("/usr/share/openvswitch"))
    return next((str(one / "vswitch.ovsschema") for one in places if (one / "vswitch.ovsschema").is_file()), "")


@pytest.fixture
def database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An Open vSwitch database of its own, without root; otherwise the test skips with the reason."""
    for tool in ("ovsdb-server", "ovsdb-tool", "ovs-vsctl"):
        if not shutil.which(tool):
            pytest.skip(f"{tool} is not installed")
    if not schema():
        pytest.skip("there is no vswitch.ovsschema")
    monkeypatch.setenv("OVS_RUNDIR", str(tmp_path))
    said("ovsdb-tool", "create", str(tmp_path / "conf.db"), schema())
    remote = f"--remote=punix:{tmp_path}/db.sock"
    command = ["ovsdb-server", remote, "--unixctl=none", "--no-chdir", str(tmp_path / "conf.db")]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            said("ovs-vsctl", "--retry", f"--timeout={SECONDS}", "--no-wait", "init")
            yield
        finally:
            server.terminate()
            server.wait(SECONDS)


def set_to(*options: str) -> OpenVSwitch:
    said("ovs-vsctl", "--no-wait", "clear", "Open_vSwitch", ".", "other_config")
    for option in options:
        said("ovs-vsctl", "--no-wait", "set", "Open_vSwitch", ".", f"other_config:{option}")
    return read_open_vswitch(live_network(), False)


def test_what_a_real_database_says(database: None) -> None:
    assert set_to() == OpenVSwitch(True, "", "kernel", False, ())
    assert set_to("hw-offload=true") == OpenVSwitch(True, "", "kernel", True, ())
    said("ovs-vsctl", "--no-wait", "add-br", "br0")
    assert set_to("hw-offload=true", "tc-policy=none") == OpenVSwitch(True, "", "kernel", True, ("br0",))
    assert set_to("dpdk-init=try", "hw-offload=true").kind == "DPDK"
    assert set_to("doca-init=true", "dpdk-socket-mem=1024,0").kind == "DOCA"
    said("ovs-vsctl", "--no-wait", "set", "Bridge", "br0", "datapath_type=netdev")
    assert set_to() == OpenVSwitch(True, "", "userspace", False, ("br0",))
    said("ovs-vsctl", "--no-wait", "add-br", "br1")
    assert set(set_to().bridges) == {"br0", "br1"}


def test_a_database_that_does_not_answer_is_unknown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not shutil.which("ovs-vsctl"):
        pytest.skip("ovs-vsctl is not installed")
    monkeypatch.setenv("OVS_RUNDIR", str(tmp_path))
    found = read_open_vswitch(live_network(), True)
    assert found.there is None and "ovs-vsctl" in found.why and os.linesep not in found.why


def test_a_recorded_switch_has_its_rules_in_tc(run: Run) -> None:
    folder = str(Path(__file__).parents[1] / "recorded_networks/open_vswitch_in_tc")
    code, out, err = run("network", "--from", folder, "--strict", "--json")
    value = json.loads(out)
    assert (code, err, value["faults"]) == (0, "", [])
    assert value["open_vswitch"] == {
        "there": True, "why": "", "kind": "kernel", "offload": True, "bridges": ["br0"],
    }  # fmt: skip
    assert {rule["interface"] for rule in value["rules"]} == {"v1", "v2"}
    assert {rule["where"] for rule in value["rules"]} == {"not_in_hw skip_hw"}
    proofs = json.loads(run("network", "prove", "v1", "--from", folder, "--json")[1])["proofs"]
    assert [(one["verdict"], one["sender"]) for one in proofs] == [
        ("software", "e1"), ("software", "e1"), ("unknown", ""),
    ]  # fmt: skip
    assert proofs[0]["counted"] == {
        "sent": 1000, "hardware": 0, "software": 1000, "arrived": 1000, "processors": 1000,
    }  # fmt: skip
