"""Reduction in the switch as a setting of NCCL: simulated, labelled so, and never handed out as proved."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from doctor_in_network_cases import NOT_SERVED, PATH, PLUG_IN, SERVED, UCC
from doctor_machines import build, nic
from simulated_settings import Asked, collnet
from verb_runs import Run

from waywiser.apply import nccl_reduction
from waywiser.apply.facts import Machine
from waywiser.apply.nccl_reduction import IN_NETWORK, NAME, here, proposed
from waywiser.apply.provable import why_never_proved
from waywiser.apply.setting import LeftOut, Setting
from waywiser.apply.simulated_times import NotTimed
from waywiser.simulator.cluster_file import parse_cluster
from waywiser.topology import load_topology

TEXT = "nodes: 4 x hse-a\nnetwork: fat-tree(2:1)\nin_network_reduction: yes\n"


def machine(text: str = TEXT, purpose: str = "mixed") -> Machine:
    return Machine(load_topology("hse-a"), None, purpose, parse_cluster(text, "made up"))


@pytest.mark.parametrize("purpose", ["latency", "bandwidth", "mixed"])
def test_what_is_proposed_is_what_simulate_says(purpose: str, run: Run, tmp_path: Path) -> None:
    file = tmp_path / "c.yaml"
    file.write_text(TEXT)
    (found,) = proposed(machine(TEXT, purpose))
    value = found.value if isinstance(found, Setting) else None
    collnet(Asked(run, "hse-a", purpose, ("--cluster", str(file))), value)
    assert found.name == NAME and "one tree of switches for each rail on 4 nodes, bounded by its links" in found.why


def test_it_is_no_measurement_and_is_not_proved() -> None:
    (found,) = proposed(machine())
    assert isinstance(found, Setting) and not found.measured and "doctor D53" in found.why
    assert why_never_proved(found) == "cannot be proved: no benchmark between nodes exercises it"


@pytest.mark.parametrize("text", ["nodes: 4 x hse-a\n", "nodes: 4 x hse-a\nin_network_reduction: no\n"])
def test_switches_that_do_not_add_are_not_proposed(text: str) -> None:
    assert list(proposed(machine(text))) == []
    assert list(proposed(Machine(load_topology("hse-a")))) == []


def test_where_the_simulator_has_no_time_the_reason_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_time(*_: Any) -> Any:
        raise NotTimed("no way between them")

    monkeypatch.setattr(nccl_reduction, "collective_times", no_time)
    (found,) = proposed(machine())
    assert isinstance(found, LeftOut) and found.why == "not known whether it gains: no way between them"


def test_what_gains_too_little_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def times(*asked: Any) -> Any:
        return {"near": {1024: 1e-5 if IN_NETWORK in asked[-1] else 0.97e-5}}

    monkeypatch.setattr(nccl_reduction, "collective_times", times)
    (found,) = proposed(machine())
    assert isinstance(found, LeftOut) and found.why.endswith(": the default is right")


@pytest.mark.parametrize(
    ("commands", "files", "told"),
    [
        (SERVED, nic() | PLUG_IN | UCC, "are there, but"),
        ({}, nic() | PLUG_IN | UCC, "not known whether sharp_am serves mlx5_0:1"),
        (NOT_SERVED, nic() | PLUG_IN | UCC, ""),
        (SERVED, nic(), ""),
        (SERVED, {}, ""),
    ],
)
def test_on_this_machine_it_is_named_where_it_is(commands: Any, files: Any, told: str, tmp_path: Path) -> None:
    root = build(tmp_path, files, commands, PATH)
    found = list(here(root, ("nccl", "openmpi")))
    assert [one.name for one in found] == ([NAME, "UCC_CL_BASIC_TLS"] if told else [])
    assert all(told in one.why and "waywiser verify --" in one.why for one in found)
    assert [one.target for one in here(root, ("openmpi",))] == (["openmpi"] if told else [])
    assert list(here(root, ("ucx",))) == []


def test_the_verb_shows_it_as_simulated(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "c.yaml"
    file.write_text(TEXT.replace("4 x", "2 x"))
    code, out, _ = run("apply", "--cluster", str(file), "--for", "nccl", "--json", "--results", str(tmp_path))
    value = json.loads(out)
    names = {one["name"]: one for one in [*value["settings"], *value["left_out"]]}
    assert code == 0 and NAME in names and value["source"] == "simulated"
