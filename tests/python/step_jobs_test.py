"""Places of a job's nodes, and two training jobs that share a network for as long as both train."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from verb_runs import Run

from waywiser.errors import InputError
from waywiser.simulator.cluster import Cluster
from waywiser.simulator.cluster_file import parse_cluster
from waywiser.simulator.placement import PLACEMENTS, places_of
from waywiser.simulator.step import Step
from waywiser.simulator.step_jobs import JobLanes, run_together, tasks_of
from waywiser.simulator.step_speed import Speed
from waywiser.simulator.step_timeline import Task, Tasks, end_of
from waywiser.simulator.training import Layout, Model
from waywiser.topology import load_topology

MODEL = Model(1_000_000_000, 16, 2048, 1024, 64)
SPEED = Speed(312e12, 0.5, "a test")
SOME = settings(derandomize=True, deadline=None, database=None, max_examples=60)
CLUSTER = """nodes: 8 x dgx-h100
network: fat-tree(4:1)
radix: 40
job: 4
placement: {placement}
second_job: {{nodes: 4, placement: {placement}, model: "parameters=13e9,layers=40,batch=64", parallel: "shard=yes"}}
"""
JOB = ["--model", "parameters=7e9,layers=32,batch=128"]


# ---- places ----
@given(st.sampled_from(PLACEMENTS), st.integers(1, 70), st.integers(0, 70), st.integers(0, 70))
@SOME
def test_places_are_different_and_free(placement: str, nodes: int, more: int, taken: int) -> None:
    everywhere = nodes + more
    found = places_of(placement, nodes, everywhere, range(min(taken, more)))
    assert len(set(found)) == len(found) == nodes and all(min(taken, more) <= one < everywhere for one in found)
    assert found == places_of(placement, nodes, everywhere, range(min(taken, more)))


def test_nodes_lie_together_or_apart() -> None:
    assert places_of("together", 4, 16) == [0, 1, 2, 3]
    assert places_of("spread", 4, 16) == [0, 8, 4, 12]
    assert sorted(places_of("random", 16, 16)) == list(range(16)) != places_of("random", 16, 16)


def test_a_cluster_says_where_its_job_is() -> None:
    cluster = parse_cluster("nodes: 8 x hse-e\nplacement: [7, 2, 5]\n", "c.yaml")
    assert (cluster.nodes, cluster.network_of(2)) == (3, {"nodes": 8, "places": [7, 2]})
    cluster = parse_cluster("nodes: 8 x hse-e\njob: 2\nplacement: spread\n", "c.yaml")
    assert cluster.network_of(2) == {"nodes": 8, "places": [0, 4]}
    assert parse_cluster("nodes: 8 x hse-e\n", "c.yaml").network_of(4) == {"nodes": 4}


@pytest.mark.parametrize(
    ("lines", "line"),
    [
        ("placement: near", 2),
        ("placement: [0, 0]", 2),
        ("placement: [8]", 2),
        ("job: 9", 2),
        ("job: 0", 2),
        ("second_job: {nodes: 2}", 2),
        ("second_job: {model: a}", 2),
        ("second_job: {nodes: 2, model: a, size: 3}", 2),
        ("second_job: {nodes: 2, model: a}", 2),
        ("job: 7\nsecond_job: {nodes: 2, model: a}", 3),
    ],
)
def test_wrong_jobs_are_refused(lines: str, line: int) -> None:
    with pytest.raises(InputError, match=f"^c.yaml, line {line}: "):
        parse_cluster(f"nodes: 8 x hse-e\n{lines}\n", "c.yaml")


def test_vary_placement(run: Run, tmp_path: Path) -> None:
    """Neighbours are the fastest; below one switch there is nothing to vary."""
    file = tmp_path / "c.yaml"
    file.write_text("nodes: 8 x dgx-h100\nnetwork: fat-tree(4:1)\nradix: 40\n")
    words = ["simulate", "all_reduce", "--algorithms", "nccl_ring", "--sizes", "64M", "--json", "--vary", "placement"]
    status, out, _ = run(*words, "--cluster", str(file))
    told = {case["variant"]: case["seconds"] for case in json.loads(out)["cases"]}
    assert status == 0 and list(told) == list(PLACEMENTS)
    assert 1.3 * told["together"] < told["spread"] and told["together"] <= told["random"]
    status, out, _ = run(*words[:-2], "--set", "placement=spread", "--cluster", str(file))
    assert json.loads(out)["cases"][0]["seconds"] == told["spread"]
    status, _, err = run(*words, "--machine", "dgx-h100")
    assert status == 2 and "one switch" in err and err.count("\n") == 1


# ---- jobs ----
def job(compute: float, wire: float) -> JobLanes:
    """Computes, then sends."""
    return JobLanes(Tasks([Task("computes", compute)], [Task("sends", wire, compute=1)]))


def test_alone_a_step_takes_what_its_answer_says() -> None:
    layouts = (
        Layout(16), Layout(16, micro=2), Layout(16, overlap=False), Layout(16, shard=True), Layout(2, tensor=8),
        Layout(4, tensor=2, pipeline=2), Layout(8, sequence=2, shard=True), Layout(4, pipeline=4, interleave=2),
    )  # fmt: skip
    for layout in layouts:
        step = Step(load_topology("dgx-a100"), Cluster("dgx-a100", {"nodes": 2}), MODEL, layout, SPEED)
        timed = step.run(lambda *_: None)
        lanes = JobLanes(tasks_of(step, timed), timed.beside)
        run_together([lanes], [{}])
        shared = lanes.shared(timed.total)
        assert shared.mean == pytest.approx(timed.total, rel=1e-9), layout
        assert shared.longest == pytest.approx(timed.total, rel=1e-9), layout


times = st.floats(0.1, 10)


@given(times, times, times, times, st.floats(1, 3))
@SOME
def test_what_another_job_takes_is_bounded(a: float, b: float, c: float, d: float, slower: float) -> None:
    """No step is faster than alone, and none is slower than if the other job never paused."""
    jobs = [job(a, b), job(c, d)]
    run_together(jobs, [{("sends", "sends"): slower}] * 2)
    for one, compute, wire in zip(jobs, (a, c), (b, d), strict=True):
        shared = one.shared(compute + wire)
        assert compute + wire - 1e-9 <= shared.mean <= shared.longest <= compute + slower * wire + 1e-9
        assert end_of(shared.spans) > 0


def test_jobs_that_always_send_share_all_the_time() -> None:
    """Each in turn 1 s at half its rate: 2 s a step, and one that computes as long as the other sends is never met."""
    jobs = [job(0, 1), job(0, 1)]
    run_together(jobs, [{("sends", "sends"): 2.0}] * 2)
    assert [one.shared(1).mean for one in jobs] == pytest.approx([2, 2])


def test_two_jobs_answer_for_themselves(run: Run, tmp_path: Path) -> None:
    told = {}
    for placement in ("together", "spread"):
        file, picture = tmp_path / f"{placement}.yaml", tmp_path / f"{placement}.json"
        file.write_text(CLUSTER.format(placement=placement))
        words = ["simulate", "step", "--cluster", str(file), *JOB, "--trace", str(picture)]
        status, out, _ = run(*words, "--json")
        assert status == 0
        told[placement] = json.loads(out)
        rows = {event["args"]["name"] for event in json.loads(picture.read_text())["traceEvents"] if event["ph"] == "M"}
        assert rows == {f"job {number}: {lane}" for number in (1, 2) for lane in ("computation", "communication")}
    for one in told["together"]["jobs"]:  # whole leaves of their own
        assert one["seconds"] == pytest.approx(one["alone_seconds"], rel=1e-9)
    for one, alone in zip(told["spread"]["jobs"], told["together"]["jobs"], strict=True):
        assert one["seconds"] > 1.01 * one["alone_seconds"] >= 1.01 * alone["alone_seconds"]
        assert one["longest_seconds"] >= one["seconds"] and one["steps"] > 1
    assert {meeting["job"] for meeting in told["spread"]["meetings"]} == {1, 2}


def test_a_second_job_is_for_a_step(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "c.yaml"
    file.write_text(CLUSTER.format(placement="spread"))
    status, _, err = run("simulate", "all_reduce", "--cluster", str(file), "--sizes", "1M")
    assert status == 2 and "step" in err and err.count("\n") == 1
