"""`waywiser tune` by two ranks on two "machines": paths between them are measured, chosen and used."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from two_machines import ROOT, TwoMachines

from waywiser import _core

pytestmark = pytest.mark.slow
MAIN = "import sys; from waywiser.cli import main; sys.argv[0] = 'waywiser'; main()"
PAIR = ["host0", "other:host0"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("WAYWISER_RUNTIME_DIR", str(tmp_path / "runtime"))
    return tmp_path / "results"


@pytest.fixture
def machines() -> Iterator[TwoMachines]:
    made = TwoMachines()
    yield made
    made.close()


@pytest.fixture
def two_links() -> Iterator[TwoMachines]:
    made = TwoMachines(links=2)
    yield made
    made.close()


def tune(machines: TwoMachines, folder: Path) -> dict[str, Any]:
    """The profile, as `waywiser run` has it measured on two hosts."""
    hosts, ssh = machines.hosts_and_ssh(folder.parent)
    ranks = [sys.executable, "-c", MAIN, "tune", "--quick", "--budget", "15", "--results", str(folder)]
    done = subprocess.run(
        [sys.executable, "-c", MAIN, "run", "-n", "2", "--hosts", str(hosts), "--ssh", str(ssh), "--plain", *ranks],
        env=os.environ | {"PYTHONPATH": str(ROOT / "python")}, capture_output=True, text=True, timeout=200,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr + done.stdout
    assert "rank 1 has taken part" in done.stderr
    return json.loads((folder / "profile.json").read_text())


def between(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The series or paths to the other machine."""
    return [one for one in entries if one.get("path", one)["destination"].endswith(":host0")]


def test_the_road_between_two_machines(machines: TwoMachines, folder: Path) -> None:
    profile = tune(machines, folder)
    series = [one for one in between(profile["series"]) if one["path"]["mechanism"] == "ucx"]
    assert "latency" in {one["operation"] for one in series}
    here, there = machines.links[0]
    assert series[0]["path"]["parameters"] == {"device": f"{here}/{there}", "transports": "network-tcp"}
    most = max(point["bytes"] for one in series for point in one["points"])
    assert machines.bytes_over_the_link() > 2 * most
    refused = between(profile["unavailable"])
    assert {one["parameters"]["transports"] for one in refused if one["mechanism"] == "ucx"} == {"rc", "dc", "ud"}
    assert all(len(one["reason"]) > 20 for one in refused)

    plan = json.loads((folder / "plan.json").read_text())
    other = profile["state"]["other"]
    assert plan["other_nodes"] == [{"fingerprint": other["fingerprint"], "machine": other["machine"]}]
    to_it = [row for row in plan["rows"] if ["host0", f"{other['fingerprint']}:host0"] in row.get("pairs", [])]
    assert {row["rail"] for row in to_it} == {"", f"{here}/{there}"}
    check_encrypted_roads(profile, to_it, f"{here}/{there}")
    explain = [*PAIR, "64K", "--results", str(folder), "--json"]
    answer = machines.start(0, 2, ["-c", MAIN, "explain", *explain]).communicate(timeout=60)
    told = json.loads(answer[0])
    assert "network-tcp" in told["chosen"], answer
    if not _core.why_no_tls():
        assert "taken where a job encrypts" in next(
            one["why"] for one in told["candidates"] if one["path"]["mechanism"] == "tls"
        )
    check_a_group_follows(machines, folder / "plan.json")


def check_encrypted_roads(profile: dict[str, Any], rows: list[dict[str, Any]], device: str) -> None:
    """They are measured and kept for jobs that ask for them, and never chosen."""
    if _core.why_no_tls():
        return
    measured = [one["path"] for one in between(profile["series"]) if one["path"]["mechanism"] == "tls"]
    told = measured + [one for one in between(profile["unavailable"]) if one["mechanism"] == "tls"]
    assert {one["parameters"]["by"] for one in told} == {"openssl", "kernel"}
    assert {one["parameters"]["device"] for one in told} == {device}
    for encrypted, mechanism in ((False, "ucx"), (True, "tls")):
        ways = [row["ways"][0]["way"] for row in rows if row["encrypted"] == encrypted]
        assert {way.partition("(")[0] for way in ways} == {mechanism}


def check_a_group_follows(machines: TwoMachines, plan: Path) -> None:
    code = """
import numpy as np, waywiser as ww
group = ww.join()
mine, theirs = np.full(3_000_000, group.rank, np.uint8), np.empty(3_000_000, np.uint8)
group.sendrecv(mine, 1 - group.rank, theirs, 1 - group.rank)
print(theirs.min(), theirs.max())
"""
    before = machines.bytes_over_the_link()
    ranks: list[subprocess.Popen[str]] = [
        machines.start(rank, 2, ["-c", code], WAYWISER_PLAN=str(plan)) for rank in range(2)
    ]
    for rank, process in enumerate(ranks):
        out, err = process.communicate(timeout=60)
        assert (process.returncode, out) == (0, f"{1 - rank} {1 - rank}\n"), err
    assert machines.bytes_over_the_link() - before > 3_000_000


def test_rank_1_ends_when_rank_0_is_killed(machines: TwoMachines, folder: Path) -> None:
    code = "import time, waywiser._core as core; held = core.OtherMachine(); print('held', flush=True); time.sleep(100)"
    first = machines.start(0, 2, ["-c", code])
    second = machines.start(1, 2, ["-c", MAIN, "tune", "--results", str(folder)])
    assert first.stdout is not None and first.stdout.readline() == "held\n"
    first.kill()
    out, err = second.communicate(timeout=30)
    assert second.returncode != 0 and out == ""
    assert len(err.splitlines()) == 1, err
    assert "rank 0 on " in err and "has ended" in err
    first.communicate()


def test_a_rank_that_its_launcher_has_bound_takes_all_cpus() -> None:
    ours = os.sched_getaffinity(0)
    code = """
import os
from waywiser.tune.other_machine import take_all_cpus
os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])
take_all_cpus()
print(len(os.sched_getaffinity(0)))
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"PYTHONPATH": str(ROOT / "python")}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert int(done.stdout) >= len(ours)
    assert ("had bound this rank to 1 of" in done.stderr) == (len(ours) > 1)


def measured(machines: TwoMachines, topology: str, options: dict[str, Any]) -> dict[str, Any]:
    """The profile that two ranks measure, without the stages of tune around it."""
    code = f"""
import waywiser._core as core
from waywiser import stages
from waywiser.topology import load_topology
if core.rank_and_size()[0] == 1:
    core.serve_other_machine(stages.peer_program())
else:
    other = core.OtherMachine()
    print(core.measure({topology}, {json.dumps(options)!r}, None, None, other))
    other.dismiss()
"""
    first, second = (machines.start(rank, 2, ["-c", code]) for rank in range(2))
    out, err = first.communicate(timeout=100)
    assert first.returncode == 0, err
    assert second.wait(timeout=30) == 0
    profile: dict[str, Any] = json.loads(out)
    return profile


def test_large_messages_go_over_both_rails(two_links: TwoMachines) -> None:
    options = {"operations": ["streaming"], "processes": [1], "min_bytes": 1 << 18, "max_bytes": 1 << 18}
    options |= {"quick": True, "budget_seconds": 5}
    profile = measured(two_links, "core.discover()", options)
    paths = [one["path"]["parameters"] for one in between(profile["series"] + profile["searched"])]
    rails = "+".join("/".join(link) for link in two_links.links)
    assert any("share" in path for path in paths if path["device"] == rails)
    assert not between(profile["rejected"])
    assert all(two_links.bytes_over_the_link(link) > 10_000_000 for link in (0, 1))


def test_gpu_memory_is_staged_in_three_ways(machines: TwoMachines) -> None:
    """Of virtual GPUs: the bytes are right, the times are none. All ways are measured, however busy the machine is."""
    options = {"backend": "virtual_gpu", "places": ["gpu0"], "operations": ["latency"], "processes": [1]}
    options |= {"min_bytes": 2 << 20, "max_bytes": 2 << 20, "budget_seconds": 120}
    profile = measured(machines, "load_topology('dgx-1v')", options)
    assert profile["simulated"]
    found = [one for one in profile["series"] if one["path"]["destination"].endswith(":gpu0")]
    assert {one["path"]["parameters"]["variant"] for one in found} == {"pageable", "whole", "pipelined"}
    assert all(point["verified"] for one in found for point in one["points"])
    assert not [one for one in profile["rejected"] if ":" in one["path"]["destination"]]
    refused = {one["reason"] for one in profile["unavailable"] if one["mechanism"] == "ucx"}
    assert "UCX cannot reach the memory of a virtual GPU" in refused
