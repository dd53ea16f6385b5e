"""`waywiser simulate` and the example on the settings of three node types."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from verb_runs import simulated

from waywiser import stages
from waywiser.cli import run
from waywiser.errors import InputError
from waywiser.lists import sizes_in
from waywiser.simulator.cluster import Cluster
from waywiser.simulator.collectives import Collective
from waywiser.topology import load_topology
from waywiser.tune.machine_results import simulated as simulated_results

ROOT = Path(__file__).parents[2]


def times(curve: dict[str, Any]) -> dict[int, float]:
    return {point["bytes"]: point["seconds"] for point in curve["points"]}


def test_four_settings_of_three_node_types() -> None:
    example = ROOT / "examples" / "rdma_settings.py"
    done = subprocess.run([sys.executable, example], capture_output=True, text=True, timeout=60, check=True)
    lines = [line.split() for line in done.stdout.splitlines()]
    assert lines[0][0] == "Simulated:"
    large = {line[0]: " ".join(line) for line in lines[1:] if line[1] == "bidirectional"}  # the last range of each
    assert "gdr off, gdrcopy on" in large["hse-a"] and "gdr off, gdrcopy on" in large["hse-c"]
    assert "gdr on, gdrcopy on" in large["hse-e"]
    small = [" ".join(line) for line in lines[1:] if line[1] == "latency" and line[2] == "8"]
    assert len(small) == 3 and all("gdr on, gdrcopy on" in line for line in small)


def test_same_input_same_output(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ("latency", "--machine", "hse-e", "--sizes", "8,1K,1M", "--vary", "gdr,gdrcopy,nics")
    assert simulated(capsys, *arguments) == simulated(capsys, *arguments)


def test_a_faster_port_is_faster(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ("bandwidth", "--machine", "dgx-a100", "--sizes", "64M")
    now = simulated(capsys, *arguments)["curves"][0]
    then = simulated(capsys, *arguments, "--set", "nic=hdr200")["curves"][0]
    slower = simulated(capsys, *arguments, "--set", "nic=edr100")["curves"][0]
    assert times(now) == times(then)
    assert times(slower)[64 << 20] > 1.5 * times(now)[64 << 20]


def test_trace_and_plot(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace, plot = tmp_path / "t.json", tmp_path / "p.svg"
    arguments = ["latency", "--machine", "hse-a", "--sizes", "8,4M", "--set", "gdr=off"]
    assert run(["simulate", *arguments, "--trace", str(trace), "--plot", str(plot)]) == 0
    assert "SIMULATED" in capsys.readouterr().out
    told = json.loads(trace.read_text())
    assert told["otherData"]["simulated"] is True
    rows = {event["args"]["name"] for event in told["traceEvents"] if event["ph"] == "M"}
    assert {"0:gpu0.d2h", "0:nic0.send", "1:gpu0.h2d"} <= rows
    assert "Simulated".upper() in plot.read_text().upper()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["speed", "--machine", "hse-a"], "write one of latency"),
        (["latency"], "which cluster"),
        (["latency", "--machine", "nowhere"], "'nowhere' is not a machine; a file is written with a slash"),
        (["latency", "--machine", "hse-a", "--vary", "colour"], "write some of gdr"),
        (["latency", "--machine", "hse-a", "--set", "nic=fast"], "edr100"),
        (["latency", "--machine", "hse-a", "--set", "ucx.coppy=1"], "not a cost"),
        (["latency", "--machine", "hse-a", "--sizes", "64K..8"], "below the first"),
        (["latency", "--machine", "hse-a", "--pair", "gpu0>gpu9"], "is not in hse-a"),
        (["latency", "--machine", "recorded-4xh200"], "no NIC"),
        (["latency", "--machine", "hse-a", "--set", "pxn=on"], "--set pxn is for collectives"),
        (["all_to_all", "--machine", "hse-a", "--set", "pxn=maybe"], "pxn is one of off, on"),
        (["latency", "--machine", "hse-a", "--path", "gdr=on"], "write MECHANISM NAME=VALUE"),
        (["latency", "--machine", "hse-a", "--path", "copy_engine fast"], "write MECHANISM NAME=VALUE"),
        (["latency", "--machine", "hse-a", "--path", "copy_engine", "--vary", "gdr"], "settings of UCX over RDMA"),
        (["all_reduce", "--machine", "hse-a", "--nodes", "0"], "1 to 100000 nodes"),
        (["all_reduce", "--machine", "hse-a", "--order", "0,0"], "GPUs of the node, which has 4, each once"),
        (["all_reduce", "--machine", "hse-a", "--order", "0,4"], "GPUs of the node, which has 4, each once"),
        (["all_reduce", "--machine", "hse-a", "--order", "a"], "numbers of GPUs"),
    ],
)
def test_bad_input_is_one_line(capsys: pytest.CaptureFixture[str], arguments: list[str], words: str) -> None:
    assert run(["simulate", *arguments]) == 2
    said = capsys.readouterr().err.strip().splitlines()
    assert words in said[-1]


def test_measure_plan_explain_and_report_of_a_machine_that_is_not_here(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "r"
    machine = ROOT / "python" / "waywiser" / "machines" / "remote-a10.json"
    arguments = ["--machine", str(machine), "--results", str(folder), "--operations", "latency"]
    assert run(["measure", *arguments, "--quick"]) == 0
    profile = json.loads((folder / "profile.json").read_text())
    assert (profile["simulated"], profile["backend"]) == (True, "simulator")
    assert run(["plan", "--results", str(folder)]) == 0
    assert json.loads((folder / "plan.json").read_text())["simulated"] is True
    assert run(["explain", "host0", "gpu0", "64K", "--results", str(folder)]) == 0
    assert run(["report", "--results", str(folder), "--no-pictures"]) == 0
    shown = capsys.readouterr().out
    assert shown.count("SIMULATED: NOT A MEASUREMENT") == 3
    assert "simulated" in (folder / "report.html").read_text().lower()
    assert run(["measure", "--results", str(folder), "--quick"]) == 2
    assert "holds Simulated: not a measurement" in capsys.readouterr().err


def test_one_question_simulates_only_its_paths(capsys: pytest.CaptureFixture[str]) -> None:
    """The answer is that of the whole simulation, without its paths."""
    asked = {"operations": ["latency"], "processes": [1], "places": ["host0", "gpu0"]}
    part, whole = simulated_results("remote-t4", **asked), simulated_results("remote-t4", operations=["latency"])
    answers = []
    for results in (part, whole):
        text = results.needed_profile_text()
        answers.append(stages.explain(text, stages.choose(text), "host0", "gpu0", 1, "latency", 65536))
    for key in ("chosen", "why", "candidates"):
        assert answers[0][key] == answers[1][key]
    assert {one.path.processes for one in part.needed_profile().series} == {1}
    assert len(part.needed_profile().series) < len(whole.needed_profile().series)
    assert run(["explain", "host0", "gpu0", "64K", "--machine", "remote-t4"]) == 0
    shown = capsys.readouterr()
    assert "SIMULATED: NOT A MEASUREMENT" in shown.out and "measured" not in shown.out.lower().replace(
        "measurement", ""
    )
    assert "simulating" in shown.err and "measuring" not in shown.err


def test_a_collective_of_a_simulated_machine_is_refused_before_the_work(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", "all_reduce", "host", "64K", "--machine", "dgx-a100"]) == 2
    shown = capsys.readouterr()
    assert shown.out == "" and shown.err.count("\n") == 1  # no line of progress
    assert shown.err.endswith("not for a simulated machine; waywiser simulate all_reduce --machine dgx-a100\n")
    assert run(["explain", "message", "host", "64K", "--machine", "nowhere"]) == 2
    assert "'nowhere' is not a machine" in capsys.readouterr().err


def test_two_simulated_measurements_are_the_same(tmp_path: Path) -> None:
    texts = []
    for name in ("a", "b"):
        arguments = ["--machine", "remote-t4", "--operations", "streaming", "--results", str(tmp_path / name)]
        assert run(["measure", *arguments, "--quick"]) == 0
        texts.append((tmp_path / name / "profile.json").read_text())
    assert texts[0] == texts[1]


def test_paths_within_one_node(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ("bandwidth", "--machine", "recorded-4xh200", "--sizes", "64M", "--pair", "gpu0>gpu1")
    (peer,) = simulated(capsys, *arguments, "--path", "copy_engine")["curves"]
    (staged,) = simulated(capsys, *arguments, "--path", "host_staged variant=whole")["curves"]
    assert 3 * times(peer)[64 << 20] < times(staged)[64 << 20]


def test_ordinary_memory_is_slower_to_copy(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ("latency", "--machine", "remote-t4", "--sizes", "64M", "--pair", "host0>gpu0", "--path")
    (pinned,) = simulated(capsys, *arguments, "copy_engine")["curves"]
    (ordinary,) = simulated(capsys, *arguments, "copy_engine memory=pageable")["curves"]
    assert 1.5 * times(pinned)[64 << 20] < times(ordinary)[64 << 20]


def test_gdr_of_collectives_as_nccl_has_it(capsys: pytest.CaptureFixture[str]) -> None:
    """GPUs of hse-a are behind a root complex, some of hse-e share a switch with a NIC; transfers have on and off."""

    def seconds(machine: str, gdr: str) -> float:
        words = ("all_reduce", "--machine", machine, "--algorithms", "ring", "--sizes", "64K", "--set", f"gdr={gdr}")
        (case,) = simulated(capsys, *words)["cases"]
        return float(case["seconds"])

    told = {one: {gdr: seconds(one, gdr) for gdr in ("on", "near", "write", "off")} for one in ("hse-a", "hse-e")}
    assert told["hse-a"]["near"] == told["hse-a"]["off"] and told["hse-e"]["on"] < told["hse-e"]["near"]
    assert told["hse-e"]["near"] < told["hse-e"]["off"] and told["hse-a"]["on"] < told["hse-a"]["write"]
    assert run(["simulate", "latency", "--machine", "hse-a", "--set", "gdr=near"]) == 2
    assert "gdr is one of off, on" in capsys.readouterr().err


def test_sizes_in_steps() -> None:
    assert sizes_in("1K..2K/512,8") == [8, 1024, 1536, 2048]
    assert sizes_in("10..25/10") == [10, 20, 25]
    for wrong in ("8/4", "1K..2K/0", "1..1G/1"):
        with pytest.raises(InputError, match="--sizes"):
            sizes_in(wrong)


def test_best_is_never_slower_than_one_of_the_settings() -> None:
    """By the rate of the slowest hop alone, "best" was slower than "off" for small messages on several machines."""
    for machine in ("hse-a", "hse-c"):
        topology = load_topology(machine)
        request = (topology, Cluster(machine, {"nodes": 2}), "all_gather", [1024, 65536, 1 << 22], ["ring"])
        times = {
            direct: [case.seconds for case in Collective(*request, direct=[direct]).run(lambda *_: None)]
            for direct in ("off", "on", "best")
        }
        assert times["best"] == [min(pair) for pair in zip(times["off"], times["on"], strict=True)]
    assert len({*times["off"], *times["on"]}) == 6  # the settings do differ


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("pcie.share=1.5", "pcie.share is a number from 0 to 1"),
        ("pcie.share=nan", "pcie.share is a number from 0 to 1"),
        ("ucx.copy=nan", "ucx.copy is a number from 0 on"),
        ("ucx.copy=inf", "ucx.copy is a number from 0 on"),
        ("ucx.copy=-1", "ucx.copy is a number from 0 on"),
    ],
)
def test_impossible_costs_are_refused(capsys: pytest.CaptureFixture[str], setting: str, words: str) -> None:
    assert run(["simulate", "latency", "--machine", "hse-a", "--sizes", "8", "--set", setting]) == 2
    shown = capsys.readouterr()
    assert shown.out == "" and shown.err.splitlines()[-1] == f"waywiser: --set {setting!r}: {words}"


def test_a_port_faster_than_its_slot_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["simulate", "bandwidth", "--machine", "hse-a", "--sizes", "64M", "--set"]
    assert run([*arguments, "nic=xdr800"]) == 0
    assert "note: the port carries 97.0 GB/s, the PCIe link of the NICs of hse-a" in capsys.readouterr().err
    assert run([*arguments, "nic=edr100"]) == 0
    assert "note: " not in capsys.readouterr().err


def test_what_is_too_large_is_refused_before_the_work(tmp_path: Path) -> None:
    """The steps of 24,000 ranks took 1.3 GB before their number was refused; here is less memory than that. With a
    second job that ends all rounds have to be run."""
    file = tmp_path / "cluster.yaml"
    file.write_text("nodes: 3000 x dgx-a100\nsecond_job: 64M\n")
    arguments = ["simulate", "all_reduce", "--cluster", str(file), "--sizes", "1M", "--json"]
    program = f"from waywiser.cli import run; raise SystemExit(run({[*arguments, '--algorithms', 'hierarchical']!r}))"

    def little_memory() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))

    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, preexec_fn=little_memory)
    assert done.returncode == 0, done.stderr[-2000:]
    assert "more than 50 million steps, too many to run" in json.loads(done.stdout)["cases"][0]["unavailable"]


@pytest.mark.parametrize("machine", ["dgx-a100", "hse-e"])
def test_a_rail_optimised_network_without_taper_blocks_nothing(machine: str) -> None:
    """Two receivers of a leaf shared a way down, while other ways were idle."""
    seconds = {}
    for kind in ("fat-tree", "rail-optimised"):
        cluster = Cluster(machine, {"nodes": 16, "kind": kind})
        run = Collective(load_topology(machine), cluster, "all_to_all", [1 << 28], ["direct"])
        seconds[kind] = run.run(lambda *_: None)[0].seconds
    assert seconds["rail-optimised"] <= 1.02 * seconds["fat-tree"]


def test_pxn_keeps_messages_in_their_rail(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "cluster.yaml"
    file.write_text("nodes: 16 x dgx-a100\nnetwork: rail-optimised(8:1)\n")
    seconds = []
    for setting in ("pxn=off", "pxn=on"):
        words = ["all_to_all", "--cluster", str(file), "--algorithms", "direct", "--sizes", "256M", "--set", setting]
        assert run(["simulate", *words, "--json"]) == 0
        seconds.append(json.loads(capsys.readouterr().out)["cases"][0]["seconds"])
    assert 2 * seconds[1] < seconds[0]


def test_fewer_ranks_than_gpus(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("all_reduce", "--machine", "dgx-a100", "--nodes", "3", "--sizes", "64M", "--algorithms", "ring,nccl_ring")
    cases = simulated(capsys, *words, "--order", "0,4")["cases"]
    assert [case["ranks"] for case in cases] == [6, 6]
    for case in cases:
        bus = 2 * 5 / 6 * case["size"] / case["seconds"]
        assert case["bus_bandwidth"] == pytest.approx(bus) and bus < 2 * 24.25e9


@pytest.mark.parametrize(("machine", "rate"), [("remote-t4", 1.2125e9), ("remote-a10", 0.121e9)])
def test_the_ethernet_card_leads_into_a_network(capsys: pytest.CaptureFixture[str], machine: str, rate: float) -> None:
    """It was "nic1 does not lead into the network"."""
    words = ("bandwidth", "--machine", machine, "--sizes", "64M", "--pair", "host0-to-host0", "--path")
    (slow,) = simulated(capsys, *words, "ucx transports=network-tcp device=eth0")["curves"]
    assert 0.95 * rate < (64 << 20) / times(slow)[64 << 20] <= rate
    (fast,) = simulated(capsys, *words, "ucx transports=network-tcp device=mlx5_0")["curves"]
    assert times(fast)[64 << 20] < times(slow)[64 << 20]


def test_the_table_has_a_bus_bandwidth(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["simulate", "all_reduce", "--machine", "dgx-a100", "--sizes", "1G", "--algorithms", "nccl_ring"]
    assert run(words) == 0
    assert "its bus" in (shown := capsys.readouterr().out) and "GB/s" in shown
    assert run(["simulate", "barrier", "--machine", "dgx-a100", "--sizes", "8"]) == 0
    assert "its bus" not in capsys.readouterr().out
