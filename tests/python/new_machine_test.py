"""Machines from the names of their parts, beside the machines of the package."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from verb_runs import Run

from waywiser.topology import load_topology
from waywiser.topology.data_sheets import KINDS, part_named, parts
from waywiser.topology.new_machine import NewMachine

H100 = ["machine", "new", "--gpus", "8xH100", "--nvswitch", "--cpus", "2x8480C", "--nics", "8xCX7", "--pcie", "gen5"]

# What a description by parts cannot say of a machine of the package; all else is equal.
SAME: dict[str, tuple[NewMachine, set[str]]] = {
    "dgx-a100": (NewMachine("2xEPYC 7742", "8xA100-SXM4-40GB", "8xCX6", nvlinks="nvswitch"), set()),
    "dgx-h100": (NewMachine("2x8480C", "8xH100", "8xCX7", nvlinks="nvswitch"), set()),
    "dgx-1v": (
        NewMachine("2xE5-2698 v4", "8xV100-SXM2-16GB", "4xCX5", nvlinks="cube-mesh", switches=4, roots=2),
        set(),
    ),
    "hse-a": (
        NewMachine("2x6152", "4xV100-SXM2-32GB", "1xCX5,1xCX5", switches=1, nics_at="root"),
        set(),
    ),
    "hse-c": (
        NewMachine("2x6240R", "4xV100-SXM2-32GB", "2xCX5"),
        # NICs behind PCIe bridges.
        {f"bridge{i}{there}" for i in (0, 1) for there in ("", f"-nic{i}", f"-root{i}")} | {"nic0-root0", "nic1-root1"},
    ),
    "hse-e": (
        NewMachine("2x7702", "8xA100-SXM4-80GB", "2xCX5", nvlinks="nvswitch"),
        # Each NIC leads to a network switch of its own.
        {"network0", "network1", "network1-nic1", "network0-nic1"},
    ),
    "remote-t4": (
        NewMachine("2x6130", "1xT4", "1xCX5,1x10GbE"),
        {"network0"},  # "InfiniBand or RoCE v2"
    ),
    "remote-a10": (NewMachine("1x7502P", "1xA10", "1xCX5-Ex,1x1GbE"), {"network0", "network1-nic1"}),
}  # fmt: skip


def facts(topology: Any) -> dict[str, Any]:
    """Each device by its id, each link by its ends; without notes, sources of figures and the order."""
    read = json.loads(topology.to_json())
    found: dict[str, Any] = {one["id"]: one for one in read["devices"]}
    for link in read["links"]:
        ends = "-".join(sorted((link.pop("a"), link.pop("b"))))
        link.pop("source")
        found[ends] = {
            name: pytest.approx(value) if isinstance(value, float) else value for name, value in link.items()
        }
    return found


@pytest.mark.parametrize("name", SAME)
def test_a_machine_of_the_package_by_its_parts(name: str) -> None:
    asked, differs = SAME[name]
    made, shipped = facts(asked.topology()), facts(load_topology(name))
    unlike = {key for key in made.keys() | shipped.keys() if made.get(key) != shipped.get(key)}
    assert unlike == differs


def test_a_data_sheet_becomes_a_machine_that_verbs_read(run: Run, tmp_path: Path) -> None:
    file = str(tmp_path / "mine.json")
    status, out, err = run(*H100, "--name", "mine", "--out", file)
    assert (status, out) == (0, "") and file in err
    machine = load_topology(file)
    assert (machine.name, machine.kind) == ("mine", "synthetic")
    assert [len(machine.ids(kind)) for kind in ("gpu", "nic", "cpu", "switch", "nvswitch")] == [8, 8, 2, 4, 1]
    assert machine.relation("gpu0", "gpu7") == "NV18" and machine.relation("gpu5", "nic5") == "PIX"
    assert machine.route("gpu0", "host0").limit == pytest.approx(63.0e9, rel=1e-3)
    status, out, err = run("simulate", "latency", "--machine", file, "--sizes", "8,64M")
    assert status == 0 and "SIMULATED" in out, err
    cluster = tmp_path / "cluster.yaml"
    cluster.write_text("nodes: 4 x mine.json\n")
    status, out, err = run("simulate", "all_reduce", "--cluster", str(cluster), "--sizes", "64K")
    assert status == 0, err


@pytest.mark.long
def test_tuning_a_new_machine(run: Run, tmp_path: Path) -> None:
    file, results = str(tmp_path / "mine.json"), str(tmp_path / "results")
    small = ["machine", "new", "--gpus", "1xL4", "--cpus", "1x9354", "--nics", "1x25GbE", "--name", "mine"]
    assert run(*small, "--out", file)[0] == 0
    status, out, err = run("explain", "gpu0", "mine:gpu0", "64K", "--machine", file)
    assert status == 0 and "SIMULATED" in out, err
    status, _, err = run("tune", "--quick", "--machine", file, "--nodes", "2", "--results", results)
    assert status == 0, err


def test_stdout_has_what_the_file_has(run: Run, tmp_path: Path) -> None:
    status, out, _ = run(*H100)
    assert status == 0
    assert run(*H100, "--out", str(tmp_path / "a.json"))[0] == 0
    assert (tmp_path / "a.json").read_text() == out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--gpus", "8xH101"], "--gpus: 'H101' is no GPU in the table of parts; the nearest are H100"),
        (["--cpus", "2x8490C"], "--cpus: '8490C' is no CPU in the table of parts; the nearest are 8480C"),
        (["--nics", "8xCX17"], "--nics: 'CX17' is no NIC in the table of parts; the nearest are CX7"),
        (["--gpus", "H100"], "--gpus: 'H100' is not COUNTxPART, such as 8xH100"),
        (["--nics", "8xCX7@500"], "--nics: the port of a ConnectX-7 has 400 Gb/s at most"),
        (["--nics", "0xCX7"], "--nics: from 1 to 64 parts of a kind, not 0"),
        (["--pcie", "gen6"], "--pcie gen6: Intel Xeon Platinum 8480C has PCIe 5"),
        (["--pcie", "5"], "--pcie '5': write one of gen3, gen4, gen5, gen6"),
        (["--cpus", "4x8480C"], "--cpus: at most 2 of Intel Xeon Platinum 8480C in a machine, not 4"),
        (["--cpus", "2x7502P"], "--cpus: at most 1 of AMD EPYC 7502P in a machine, not 2"),
        (["--gpus", "8xV100"], "write --nvswitch or --nvlinks cube-mesh|none"),
        (["--gpus", "8xL40S", "--nvswitch"], "--nvlinks nvswitch: NVIDIA L40S has no NVLinks"),
        (["--gpus", "8xH100", "--nvlinks", "cube-mesh"], "is of 8 GPUs with 6 NVLinks each, not 8 with 18"),
        (["--gpus", "4xH100", "--nvswitch", "--nvlinks", "all"], "--nvswitch and --nvlinks all: write one of them"),
        (["--roots", "1"], "--roots: from 2, one a CPU, to 64, not 1"),
        (["--switches", "65"], "--switches: from 0 to 64, not 65"),
        (["--switches", "-1"], "--switches: from 0 to 64, not -1"),
        (["--out", "mine.txt"], "mine.txt: the name of a machine's file ends in .json"),
    ],
)
def test_what_cannot_be_is_one_line(run: Run, words: list[str], said: str) -> None:
    status, out, err = run("machine", "new", *(() if "--cpus" in words else ("--cpus", "2x8480C")), *words)
    assert (status, out) == (2, "") and said in err and err.count("\n") == 1


def test_other_words_are_one_line(run: Run) -> None:
    for words, said in (
        (["old"], "'old' is none of new, parts"),
        (["new"], "machine new needs --cpus"),
        (["parts", "--gpus", "8xH100"], "machine parts takes no other options than --json"),
    ):
        status, out, err = run("machine", *words)
        assert (status, out) == (2, "") and said in err and err.count("\n") == 1


def test_each_figure_has_a_source_and_each_name_one_part(run: Run) -> None:
    status, out, _ = run("machine", "parts", "--json")
    assert status == 0
    for row in json.loads(out):
        assert row["source"] and row["figures"] and row["sources"].keys() <= row["figures"].keys()
    for one in parts():
        for name in (*one.names, one.short):
            assert part_named(one.kind, name, "").name == one.name
    status, out, _ = run("machine", "parts")
    assert status == 0 and all(word in out for word in KINDS.values())


@pytest.mark.parametrize("part", parts(), ids=lambda one: one.name)
def test_each_part_makes_a_machine(part: Any) -> None:
    words = {"cpu": "2xEPYC 7742", "gpu": "", "nic": "1xCX5"}
    words[part.kind] = f"1x{part.name}"
    made = NewMachine(words["cpu"], words["gpu"], words["nic"], nvlinks="none").topology()
    assert made.ids(part.kind)
    for a in made.places():
        for b in made.places():
            assert made.route(a, b).limit_source


def test_the_page_has_the_message(run: Run) -> None:
    page = (Path(__file__).parents[2] / "docs/new-machine.md").read_text(encoding="utf-8")
    _, _, err = run("machine", "new", "--cpus", "2x8480C", "--gpus", "8xH101")
    assert err in page


def test_gpudirect_rdma_can_be_impossible(run: Run, tmp_path: Path) -> None:
    file = str(tmp_path / "mine.json")
    parts = ["--gpus", "2xL40S", "--cpus", "2x7763", "--nics", "2xCX6", "--switches", "2"]
    told: dict[str, dict[str, float]] = {}
    for word in ([], ["--no-gdr"]):
        assert run("machine", "new", *parts, *word, "--out", file)[0] == 0
        cases: dict[str, float] = {}
        for gdr in ("on", "off"):
            words = ("all_reduce", "--machine", file, "--sizes", "64K", "--algorithms", "ring", "--set", f"gdr={gdr}")
            _, out, _ = run("simulate", *words, "--json")
            cases[gdr] = json.loads(out)["cases"][0]["seconds"]
        status, out, _ = run("simulate", "latency", "--machine", file, "--sizes", "8", "--vary", "gdr", "--json")
        assert status == 0
        for curve in json.loads(out)["curves"]:
            impossible = bool(word) and curve["setting"]["gdr"] == "on"
            assert bool(curve["points"]) != impossible
            assert ("cannot reach the memory of gpu0" in (curve["unavailable"] or "")) == impossible
        assert run("simulate", "latency", "--machine", file, "--sizes", "8")[1].count("cannot reach") == 0
        told[" ".join(word)] = cases
    assert told[""]["on"] < told[""]["off"] == told["--no-gdr"]["on"] == told["--no-gdr"]["off"]


def test_each_kind_of_network_has_its_latency(run: Run, tmp_path: Path) -> None:
    """Of a small message between hosts: InfiniBand before RoCE before Slingshot before EFA, which is assumed."""
    found = []
    for nic in ("2xCX6", "2xCX7-RoCE@200", "2xSS11", "2xEFA"):
        file = str(tmp_path / "mine.json")
        assert run("machine", "new", "--gpus", "4xA100", "--cpus", "2x7742", "--nics", nic, "--out", file)[0] == 0
        words = ("latency", "--machine", file, "--sizes", "8", "--pair", "host0-to-host0", "--json")
        told = json.loads(run("simulate", *words)[1])
        found.append(told["curves"][0]["points"][0]["seconds"])
        assumed = [one["assumed"] for one in told["assumed"] if one["parameter"] == "nic.latency"]
        assert assumed == ["14 us from card to card" if "EFA" in nic else "a ConnectX-5's"]
    assert found == sorted(found) and found[2] < 3e-6 and 1.4e-5 < found[3] < 1.7e-5
    assert found[1] - found[0] == pytest.approx(210e-9) and found[2] - found[0] == pytest.approx(260e-9)
