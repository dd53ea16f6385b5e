"""`waywiser simulate`, `explain` and `report` say the same about a pair of memories, a size and a setting."""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from pathlib import Path
from typing import Any

import pytest
from node_profiles import FAR, MIXED, STUDIED, gpu_profile_of, profile_of, text_of
from simulated_settings import NOT_SIMULATED, SIMULATED, Asked
from verb_runs import Run

import waywiser
from waywiser import stages
from waywiser.apply.facts import Machine
from waywiser.apply.nearest import rdma_nics
from waywiser.apply.node_switches import NAMES, PURPOSES, between_nodes, name_of
from waywiser.apply.propose import settings_for
from waywiser.other_nodes import for_core
from waywiser.plan import read_plan
from waywiser.profile import Series
from waywiser.report.curves import all_curves
from waywiser.report.node_charts import node_charts
from waywiser.simulator.cluster_file import read_cluster
from waywiser.topology import load_topology
from waywiser.topology.load import machine_names
from waywiser.units import format_bytes, format_seconds

SIZES = (8, 4 << 10, 8 << 10, 64 << 10, 1 << 20, 64 << 20)
MEMORIES = [("gpu0", "gpu0"), ("host0", "gpu0"), ("gpu0", "host0"), ("host0", "host0")]
# Alone: two nodes of the type. In the cluster file: from a node of the first type to one of the second.
NODES = [
    pytest.param("hse-a", "hse-a", False),
    pytest.param("hse-e", "hse-e", False, marks=pytest.mark.long),
    pytest.param("hse-a", "hse-e", True),
    pytest.param("hse-c", "hse-a", True, marks=pytest.mark.long),
]
# Of two types: between their GPUs, and in the long tests between the other memories.
PAIRS = [
    pytest.param(
        *memories, *node.values, marks=[*node.marks, *([pytest.mark.long] if node.values[2] and apart else [])]
    )
    for node in NODES
    for apart, memories in enumerate(MEMORIES)
]
Setting = dict[str, str]
Times = dict[int, float]


def simulated(run: Run, words: list[str], source: str, destination: str, verb: str) -> list[tuple[Setting, Times]]:
    vary = ["--vary", "gdr,gdrcopy"] if "gpu0" in (source, destination) else []
    sizes = ",".join(map(str, SIZES))
    status, out, err = run("simulate", verb, *words, "--pair", f"{source}-to-{destination}", "--sizes", sizes, *vary,
                           "--json")  # fmt: skip
    assert status == 0, err
    return [
        (one["setting"], {point["bytes"]: point["seconds"] for point in one["points"]})
        for one in json.loads(out)["curves"]
    ]


def measured(one: Series) -> Times:
    return {point.bytes: point.seconds for point in one.points if point.bytes in SIZES}


def series_of(told: tuple[Setting, Times], all_series: list[Series]) -> Series:
    """The series of the profile, over one rail, with this setting and exactly these times."""
    setting, times = told
    for one in all_series:
        given = dict(one.path.parameters)
        over_one = "+" not in given["device"] and setting.items() <= given.items()
        if over_one and measured(one) == pytest.approx(times, rel=1e-9):
            return one
    raise AssertionError((setting, times, [measured(one) for one in all_series]))


@pytest.mark.slow
@pytest.mark.parametrize(("source", "destination", "machine", "other", "mixed"), PAIRS)
def test_a_pair_between_nodes(
    source: str, destination: str, machine: str, other: str, mixed: bool, run: Run, tmp_path: Path
) -> None:
    file = tmp_path / "cluster.yaml"
    file.write_text(f"nodes: [1 x {machine}, 1 x {other}]\n")
    words = ["--cluster", str(file)] if mixed else ["--machine", machine]
    profile, text = profile_of(machine, mixed), text_of(machine, mixed)
    plan = stages.choose(text)
    drawn = {one["pair"]: one["operations"] for one in all_curves(profile, read_plan(plan.encode(), "plan"))}
    there = f"{other}:{destination}"
    places = source, for_core(there, profile.other_nodes)
    for verb, operation in (("latency", "latency"), ("bandwidth", "streaming"), ("bidirectional", "bidirectional")):
        known = [
            one for one in profile.series
            if (one.path.mechanism, one.path.source, one.path.destination) == ("ucx", source, there)
            and one.operation == operation
        ]  # fmt: skip
        curves = simulated(run, words, source, destination, verb)
        assert len(curves) == (4 if "gpu0" in (source, destination) else 1)
        for told in curves:
            one = series_of(told, known)
            lines = drawn[f"{source} to {there}"][operation]["series"]
            (line,) = [each for each in lines if each["label"] == one.path.label]
            on_the_page = dict(zip(line["bytes"], line["seconds"], strict=True))
            for size, seconds in told[1].items():
                assert on_the_page[size] == pytest.approx(seconds, rel=6e-4), (verb, size)  # four digits
        rail = dict(one.path.parameters)["device"]
        for size in SIZES:
            explained = stages.explain(text, plan, *places, 2, operation, size, rail)
            found = {
                json.dumps(each["path"]["parameters"], sort_keys=True): each["measured"]["seconds"]
                for each in explained["candidates"] if each["path"]["mechanism"] == "ucx"
            }  # fmt: skip
            for told in curves:
                key = json.dumps(dict(series_of(told, known).path.parameters), sort_keys=True)
                assert found[key] == pytest.approx(told[1][size], rel=1e-9), (verb, size, told[0])


@pytest.mark.slow
@pytest.mark.parametrize(("machine", "other", "mixed"), NODES)
def test_the_chart_of_the_node_type(machine: str, other: str, mixed: bool, run: Run, tmp_path: Path) -> None:
    """Each dot's text, and the best setting of each size."""
    file = tmp_path / "cluster.yaml"
    file.write_text(f"nodes: [1 x {machine}, 1 x {other}]\n")
    words = ["--cluster", str(file)] if mixed else ["--machine", machine]
    profile = profile_of(machine, mixed)
    page = str(node_charts(profile))
    path = next(one for one in between_nodes(profile).paths if one.node == other)
    times: dict[Any, Times] = {}
    for setting, told in simulated(run, words, "gpu0", "gpu0", "latency"):
        switches = setting["gdr"], setting["gdrcopy"]
        times[switches] = told
        for size, seconds in told.items():
            dot = f"{name_of(switches)}: {format_bytes(size)} {format_seconds(seconds)}</title>"
            assert dot in page, (setting, size)
    for first, last, switches in path.by_size("latency"):
        for size in (one for one in SIZES if first <= one <= last):
            assert times[switches][size] == pytest.approx(min(times[one][size] for one in NAMES), rel=1e-6)
    assert MIXED.count(other) == 1


# ---- settings ----

FIRST = ("hse-a", "hse-e", "remote-t4")
OTHERS = ("dgx-1v", "dgx-2", "dgx-a100", "dgx-h100", "hse-c", "lassen", "remote-a10")
WHERE_THERE_IS_TIME = ("dgx-1v", "dgx-2", "dgx-a100", "remote-a10")  # the kinds of machine are among the others
# The second has other numbers of NICs and GPUs than the first.
MIXED_PAIRS = [("hse-a", "hse-e"), ("hse-e", "dgx-a100"), ("dgx-1v", "remote-t4"), ("lassen", "hse-c")]
# What two types decide together; the rest is about one of them, and tried above.
BETWEEN_NODES = (
    "UCX_MAX_RNDV_RAILS", "UCX_DISTANCE_BW", "UCX_IB_GPU_DIRECT_RDMA", "UCX_TLS", "MPIR_CVAR_CH4_OFI_ENABLE_HMEM",
)  # fmt: skip
# Decided by the description of the machine, without any simulated profile.
DESCRIBED = ("UCX_MAX_RNDV_RAILS", "NCCL_NET_GDR_LEVEL", "NCCL_NET_GDR_READ")


def agree(asked: Asked, machine: Machine, names: Collection[str]) -> dict[str, str]:
    """Every variable that is set, and every one that is not, is so by the simulator's times."""
    settings = settings_for(machine, unchecked=True)
    found = {one.name: one.value for one in settings.settings}
    assert found.keys() <= SIMULATED.keys() | NOT_SIMULATED.keys()
    for name in names:
        SIMULATED[name](asked, found.get(name))
    return found


@pytest.mark.parametrize("purpose", PURPOSES)
@pytest.mark.parametrize(
    "machine",
    [
        *FIRST,
        *(pytest.param(one, marks=pytest.mark.long if one in WHERE_THERE_IS_TIME else pytest.mark.slow)
          for one in OTHERS),
    ],
)  # fmt: skip
def test_rails_and_nccl_are_set_as_simulated(machine: str, purpose: str, run: Run) -> None:
    asked = Asked(run, machine, purpose, ("--machine", machine))
    found = agree(asked, Machine(load_topology(machine), None, purpose), DESCRIBED)
    # Published: the peak of hse-e needs both rails; GPUDirect RDMA is off on hse-a, but for latency.
    assert "UCX_MAX_RNDV_RAILS" not in found or machine not in ("hse-a", "hse-e")
    assert "NCCL_NET_GDR_LEVEL" not in found or machine != "hse-a" or purpose == "latency"


@pytest.mark.parametrize(
    "machine",
    [pytest.param(one, marks=pytest.mark.slow if one in STUDIED else pytest.mark.long)
     for one in (*FIRST, *OTHERS)],
)  # fmt: skip
def test_all_settings_are_as_simulated(machine: str, run: Run) -> None:
    gpus = ("gpu0", *FAR.get(machine, ()))
    profile = profile_of(machine)
    for purpose in PURPOSES:
        asked = Asked(run, machine, purpose, ("--machine", machine), gpus)
        agree(asked, Machine(load_topology(machine), profile, purpose), SIMULATED)


@pytest.mark.long
@pytest.mark.parametrize(("first", "second"), [*MIXED_PAIRS, *((b, a) for a, b in MIXED_PAIRS)])
def test_settings_of_two_types_are_as_simulated(first: str, second: str, run: Run, tmp_path: Path) -> None:
    """One node of each: the paths between the types decide."""
    file = tmp_path / "cluster.yaml"
    file.write_text(f"nodes: [1 x {first}, 1 x {second}]\n")
    cluster = read_cluster(file)
    profile = gpu_profile_of(cluster)
    for purpose in PURPOSES:
        asked = Asked(run, first, purpose, ("--cluster", str(file)))
        machine = Machine(load_topology(first), profile, purpose, cluster)
        agree(asked, machine, BETWEEN_NODES)


def test_every_type_of_the_package_with_rdma_is_tried() -> None:
    """recorded-4xh200 has a network without RDMA."""
    assert {*FIRST, *OTHERS} == {one for one in machine_names() if rdma_nics(Machine(load_topology(one)))}


def test_the_table_has_every_variable_that_is_proposed() -> None:
    package = Path(waywiser.__file__).parent
    found: set[str] = set()
    proposing = ("ucx", "ucx_network", "ucx_rails", "openmpi", "mpich", "nccl", "nccl_network")
    for file in (*(f"apply/{one}" for one in proposing), "prove/algorithms"):
        text = (package / f"{file}.py").read_text()
        found |= set(re.findall(r'"((?:UCX|NCCL|OMPI_MCA|MPIR_CVAR)_[A-Za-z0-9_]+)"', text))
    assert found - SIMULATED.keys() - NOT_SIMULATED.keys() == set()
    assert not SIMULATED.keys() & NOT_SIMULATED.keys() and all(NOT_SIMULATED.values())
