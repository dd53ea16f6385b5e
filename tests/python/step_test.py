"""`waywiser simulate step`: its formulas, laws that its times keep, its answer as JSON and as text."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import pytest
from verb_runs import Run

from waywiser.errors import InputError
from waywiser.simulator.cluster import Cluster
from waywiser.simulator.step import Step, Timed
from waywiser.simulator.step_changes import changes
from waywiser.simulator.step_groups import (
    data_groups,
    expert_groups,
    same_expert_groups,
    sequence_groups,
    stage_groups,
    tensor_groups,
)
from waywiser.simulator.step_speed import Speed
from waywiser.simulator.training import PLACEMENTS, Layout, Model, layout_in, model_in
from waywiser.topology import load_topology

SLACK = 1 + 1e-9
MODEL = Model(1_000_000_000, 16, 2048, 1024, 64)
SPEED = Speed(312e12, 0.5, "a test")
WORDS = ["simulate", "step", "--machine", "dgx-a100", "--nodes", "2", "--model", "parameters=1.3e9,layers=24,batch=64"]


def step(layout: Layout, nodes: int = 2, machine: str = "dgx-a100", model: Model = MODEL, **costs: float) -> Step:
    cluster = Cluster(machine, {"nodes": nodes}, costs=dict(costs))
    return Step(load_topology(machine), cluster, model, layout, SPEED)


def timed(asked: Step) -> Timed:
    return asked.run(lambda *_: None)


# ---- the formulas ----
def test_operations_are_those_of_the_published_formula() -> None:
    """Narayanan et al. 2021: 96 B s l h^2 (1 + s / 6h + V / 16 l h) with recomputation, parameters 12 l h^2 + V h."""
    layers, hidden, sequence, batch, words = 40, 6144, 2048, 1024, 51200
    parameters = 12 * layers * hidden**2 + words * hidden
    formula = (
        96 * batch * sequence * layers * hidden**2 * (1 + sequence / (6 * hidden) + words / (16 * layers * hidden))
    )
    model = Model(parameters, layers, hidden, sequence, batch, recompute=True)
    # The formula does not repeat the forward pass of the last layer, that of the words: 2 of 8 parts of V h.
    repeated = 2 * batch * sequence * words * hidden
    assert model.operations - repeated == pytest.approx(formula, rel=1e-12)


def test_groups_hold_each_gpu_once() -> None:
    for data, tensor, pipeline in ((16, 1, 1), (2, 8, 1), (4, 2, 2), (2, 2, 4), (1, 4, 4), (4, 1, 4), (1, 8, 2)):
        layout = Layout(data, tensor, pipeline)
        for groups in (tensor_groups(layout, 8), data_groups(layout, 8)):
            assert sorted(gpu for group in groups.of_node for gpu in group) == list(range(8))
        assert len(data_groups(layout, 8).of_node[0]) * data_groups(layout, 8).nodes == data
        assert len(stage_groups(layout, 8).of_node[0]) * stage_groups(layout, 8).nodes == 2


@pytest.mark.parametrize("placement", PLACEMENTS)
def test_a_placement_says_which_gpus_are_neighbours(placement: str) -> None:
    """Of 2 x 8 GPUs: those of a dimension are as far apart as the dimensions before it are large."""
    layout = Layout(2, tensor=2, pipeline=2, sequence=2, expert=2, placement=placement)
    names = placement.split("-")
    sizes = {"tensor": 2, "data": 4, "pipeline": 2}
    for name, found in (("tensor", tensor_groups), ("data", data_groups), ("pipeline", stage_groups)):
        stride = math.prod(sizes[one] for one in names[: names.index(name)])
        groups = found(layout, 8)
        first = groups.of_node[0]
        if stride < 8:
            assert first[: 8 // stride] == list(range(0, min(8, stride * sizes[name]), stride))
        assert len(first) * groups.nodes == sizes[name]
    # A sequence's GPUs are neighbours within data parallelism; experts are shared out over neighbours, too.
    assert sequence_groups(layout, 8).of_node[0] == expert_groups(layout, 8).of_node[0]
    assert len(same_expert_groups(layout, 8).of_node[0]) * same_expert_groups(layout, 8).nodes == 2


def test_groups_that_cut_nodes_in_different_ways_are_refused() -> None:
    with pytest.raises(InputError, match="data parallelism of 6 GPUs, 2 apart, takes other GPUs of one node of 8"):
        data_groups(Layout(6, tensor=2), 8)


# ---- the laws of a step ----
LAYOUTS = [
    Layout(16),
    Layout(16, shard=True),
    Layout(2, tensor=8),
    Layout(4, tensor=2, pipeline=2),
    Layout(4, pipeline=2, sequence=2, placement="data-tensor-pipeline"),
]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_step_is_its_parts_and_no_faster_than_its_computation(layout: Layout) -> None:
    found = timed(step(layout))
    assert found.total == found.compute + found.exposed + found.bubble
    assert found.compute == pytest.approx(MODEL.operations / (16 * SPEED.reached))
    assert min(found.tensor, found.sequence, found.stages, found.bubble, found.data) >= 0
    sizes = (layout.tensor, layout.sequence, layout.pipeline)
    assert [part > 0 for part in (found.tensor, found.sequence, found.stages)] == [size > 1 for size in sizes]
    if layout.pipeline == 1:
        return
    slots = (found.compute + found.tensor + found.sequence + found.stages) / (MODEL.batch // layout.data)
    assert found.bubble == pytest.approx((layout.pipeline - 1) * slots)


def test_parts_of_stages_shorten_the_bubble_and_send_more() -> None:
    whole, parts = (timed(step(Layout(4, tensor=2, pipeline=2, interleave=count))) for count in (1, 2))
    assert parts.stages == pytest.approx(2 * whole.stages)
    longer = 1 + (parts.stages - whole.stages) / (whole.compute + whole.tensor + whole.stages)
    assert parts.bubble == pytest.approx(whole.bubble / 2 * longer)


def test_experts_are_sent_to_and_have_gradients_of_their_own() -> None:
    """Of 8 experts with 100 million parameters each a token takes 2; a GPU has 2 of them."""
    experts = replace(MODEL, parameters=1_000_000_000, experts=8, chosen=2, active=400_000_000)
    assert experts.of_experts == 800_000_000
    layout = Layout(16, expert=4)
    found = timed(step(layout, model=experts))
    calls = {call.name: call for call in found.calls}
    assert calls["experts"].size == 2 * 1024 * 2048 * 2 and calls["experts"].ranks == 4
    assert calls["experts"].times == 4 * 16 * 4 and found.expert == calls["experts"].seconds * calls["experts"].times
    assert (calls["gradients"].ranks, calls["gradients of experts"].ranks) == (16, 4)
    for name, parameters in (("gradients", 200_000_000), ("gradients of experts", 200_000_000)):
        assert calls[name].size * calls[name].times == pytest.approx(2 * parameters, rel=1e-3)
    assert found.compute < timed(step(Layout(16))).compute / 2
    assert step(layout, model=experts).state_bytes() == 16 * 400_000_000


@pytest.mark.parametrize("layout", LAYOUTS[:2])
def test_overlap_is_never_slower(layout: Layout) -> None:
    assert timed(step(layout)).total <= timed(step(replace(layout, overlap=False))).total * SLACK


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_faster_network_is_never_slower(layout: Layout) -> None:
    slow = step(layout)
    slow.cluster.network["port_rate"] = 12.5e9
    fast = step(layout)
    fast.cluster.network["port_rate"] = 50e9
    assert timed(fast).total <= timed(slow).total * 1.01  # 1 %: pieces of trees may meet in a worse order


def test_more_replicas_of_as_much_work_each_expose_no_less() -> None:
    """Weak scaling: the computation of a GPU stays, the all-reduce has more ranks."""
    exposed = []
    for nodes in (1, 2, 4):
        found = timed(step(Layout(8 * nodes), nodes, model=replace(MODEL, batch=64 * nodes)))
        assert found.compute == pytest.approx(MODEL.operations / (8 * SPEED.reached))
        exposed.append(found.data)
    assert exposed == sorted(exposed)


def test_a_machine_alone_has_no_communication() -> None:
    found = timed(step(Layout(1), 1, "remote-a10", replace(MODEL, batch=1)))
    assert (found.exposed, found.bubble, found.calls) == (0, 0, ())


# ---- the verb ----
def test_the_answer_as_json_and_as_text(run: Run) -> None:
    code, out, err = run(*WORDS, "--parallel", "tensor=2", "--json")
    assert code == 0, err
    told: dict[str, Any] = json.loads(out)
    assert told["simulated"] and told["parallel"]["data"] == 8 and told["gpu"]["peak"] == 312e12
    assert told["seconds"] == pytest.approx(told["compute"] + told["exposed"] + told["bubble"])
    assert {one["name"] for one in told["collectives"]} == {"tensor", "gradients"}
    names = {one["change"] for one in told["changes"]}
    assert {"ports of twice the rate (PCIe is the limit)", "twice as many NVLinks", "without overlap"} <= names
    code, out, err = run(*WORDS, "--parallel", "tensor=2", "--nodes", "1")
    assert code == 0 and out.count("SIMULATED") == 3 and "tensor: all_reduce" in out, err
    assert "computation" in out and "parameters, gradients and optimizer take 9.69 GiB of a GPU" in out


def test_changes_are_simulated_and_not_estimated() -> None:
    asked = step(Layout(16))
    by_name = {one.name.partition(" (")[0]: one.timed for one in changes(asked, lambda *_: None)}
    other = step(Layout(16, overlap=False))
    assert by_name["without overlap"].total == timed(other).total
    assert by_name["ports of twice the rate"].total <= timed(asked).total * SLACK


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("--model", "layers=24,batch=64", "--model: parameters is missing"),
        ("--model", "parameters=-1,layers=24,batch=64", "parameters must be a number above 0"),
        ("--model", "parameters=1e9,layers=24,batch=64,colour=red", "--model 'colour=red': write some of parameters="),
        ("--model", "parameters=1e9,layers=24,layers=2,batch=64", "layers is given twice"),
        ("--model", "parameters=1e9,layers=24,batch=64,precision=fp4", "precision is one of bf16, fp16, fp32"),
        ("--parallel", "tensor=3", "tensor=3 does not divide the 8 GPUs of a node"),
        ("--parallel", "pipeline=5", "does not divide 16 GPUs"),
        ("--parallel", "pipeline=16", "pipeline=16 does not divide the 24 layers"),
        ("--parallel", "micro=3", "does not divide 64"),
        ("--parallel", "shard=maybe", "shard must be yes or no"),
        ("--parallel", "shard=yes,pipeline=2", "shard=yes is for pipeline=1"),
        ("--parallel", "bucket=0", "bucket must be a size above 0"),
        ("--gpu", "utilisation=2", "utilisation must be a number above 0 and at most 1"),
        ("--gpu", "peak=fast", "peak must be a number above 0"),
        ("--set", "pxn=on", "--set pxn is not for step"),
        ("--sizes", "64M", "--sizes is not for step"),
    ],
)
def test_bad_input_is_one_line(run: Run, option: str, value: str, said: str) -> None:
    code, out, err = run(*WORDS, option, value)
    assert (code, out) == (2, "") and said in err.strip().splitlines()[-1]


def test_nodes_without_a_network_have_no_step(run: Run) -> None:
    words = ["simulate", "step", "--machine", "recorded-4xh200", "--model", "parameters=1e9,layers=16,batch=64"]
    code, out, err = run(*words, "--nodes", "2")
    assert (code, out) == (2, "") and "has no NIC with a known rate" in err
    assert run(*words, "--nodes", "1")[0] == 0


def test_the_options_of_a_step_are_not_for_transfers(run: Run) -> None:
    code, _, err = run("simulate", "latency", "--machine", "hse-a", "--gpu", "utilisation=1")
    assert code == 2 and "--gpu is not for latency" in err


def test_the_rate_of_a_gpu_that_is_not_known_is_asked_for(run: Run) -> None:
    words = [*WORDS, "--model", "parameters=1.3e9,layers=24,batch=64,precision=fp32"]
    code, _, err = run(*words)
    assert code == 2 and "is not known: write --gpu peak=100e12" in err
    assert run(*words, "--gpu", "peak=19.5e12")[0] == 0


def test_what_is_left_out_is_derived() -> None:
    model = model_in("parameters=1.2B,layers=24,batch=64")
    assert model.parameters == 1_200_000_000 and model.hidden == 2041 and model.sequence == 2048
    assert layout_in("", model, 16, 8) == Layout(16)
