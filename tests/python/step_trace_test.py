"""A step from the trace of one GPU, and the trace of a step."""

from __future__ import annotations

import gzip
import itertools
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from verb_runs import Run

from waywiser.errors import InputError
from waywiser.simulator.cluster import Cluster
from waywiser.simulator.profiler_trace import read_trace
from waywiser.simulator.step import Step
from waywiser.simulator.step_speed import Speed, work_of
from waywiser.simulator.step_trace import trace_of
from waywiser.simulator.traced import BACKWARD, FORWARD, OPTIMIZER, Kernels, traced_of
from waywiser.simulator.training import Layout, Model
from waywiser.topology import load_topology

RECORDED = Path(__file__).parents[2] / "docs/recorded/step-h200.json.gz"
MODEL = Model(1_000_000_000, 16, 2048, 1024, 64)
KERNELS = {
    FORWARD: Kernels(0.07, 0.03), BACKWARD: Kernels(0.1, 0.09, 0.01), OPTIMIZER: Kernels(0, 0.03),
}  # fmt: skip
TRACED = traced_of(KERNELS, 2, 64)


def made_up(first: float = 0) -> list[dict[str, Any]]:
    """Two steps of 100 us: 20 forward, 10 idle, 40 backward, 20 NCCL alone, 10 optimizer. Thread 2 is autograd's."""
    events: list[dict[str, Any]] = []

    def add(kind: str, name: str, thread: int, begin: float, took: float, **args: Any) -> None:
        at = {"ts": first + begin, "dur": took}
        events.append({"ph": "X", "cat": kind, "name": name, "pid": 1, "tid": thread, **at, "args": args})

    def kernel(number: int, name: str, thread: int, launched: float, begin: float, took: float) -> None:
        add("cuda_runtime", "cudaLaunchKernel", thread, launched, 0.5, correlation=number)
        add("kernel", name, 7, begin, took, correlation=number)

    for step in range(2):
        zero, number = 100 * step, 10 * step
        add("user_annotation", f"ProfilerStep#{step + 3}", 1, zero, 12)
        add("cpu_op", "autograd::engine::evaluate_function: MmBackward0", 2, zero + 2, 2)
        add("user_annotation", "Optimizer.step#SGD.step", 1, zero + 6, 2)
        kernel(number + 1, "gemm", 1, zero + 1, zero + 10, 20)
        kernel(number + 2, "gemm", 2, zero + 3, zero + 40, 40)
        kernel(number + 3, "ncclDevKernel_AllReduce", 2, zero + 3, zero + 70, 30)
        kernel(number + 4, "sgd", 1, zero + 7, zero + 100, 10)
    add("kernel", "of no step", 7, 500, 50, correlation=99)
    add("cuda_runtime", "cudaLaunchKernel", 1, 400, 1, correlation=99)
    events.append({"ph": "M", "name": "process_name", "pid": 1})
    return events


def written(folder: Path, events: Any) -> Path:
    file = folder / "trace.json"
    file.write_text(json.dumps({"traceEvents": events}))
    return file


def test_a_trace_is_taken_apart(tmp_path: Path) -> None:
    """Of the second step: the end of the first one is known. 10 us of waiting come before the backward pass."""
    for file in (written(tmp_path, made_up()), written(tmp_path, made_up(5e12))):
        found = read_trace(file, 8)
        micros = [round(seconds * 1e6, 2) for seconds in (found.forward, found.backward, found.optimizer, found.idle)]
        assert (micros, found.steps, found.sequences) == ([20, 50, 10, 10], 1, 8)


def test_a_recorded_trace_has_the_time_of_the_step_that_was_measured_without_it() -> None:
    """25.67 ms: benchmarks/results/step-2xh200.json."""
    found = read_trace(RECORDED, 8)
    assert found.forward + found.backward + found.optimizer == pytest.approx(25.67e-3, rel=0.01)
    assert 2 < found.backward / found.forward < 3 and found.steps == 2


@pytest.mark.parametrize(
    ("events", "said"),
    [
        ([], "no ProfilerStep#"),
        (made_up()[:1], "no kernel of a step"),
        ([one for one in made_up() if one["name"] != "cudaLaunchKernel"], "no kernel of a step"),
        (
            [one for one in made_up() if one["cat" if "cat" in one else "ph"] != "cpu_op"],
            "no kernel of a backward pass",
        ),
        (3, "not a trace of PyTorch's profiler"),
        ([3], "not a trace of PyTorch's profiler"),
        ([{"ph": "X", "name": "one", "ts": "now", "dur": 1}], "not a trace of PyTorch's profiler"),
        ([{"ph": "X", "name": "one", "ts": 0, "dur": -1}], "not a trace of PyTorch's profiler"),
        ([{"ph": "X", "name": "one", "ts": 0, "dur": 1, "args": {"correlation": []}}], "not a trace"),
    ],
)
def test_what_is_no_trace_is_one_line(tmp_path: Path, events: Any, said: str) -> None:
    with pytest.raises(InputError, match=said):
        read_trace(written(tmp_path, events), 8)


def test_broken_files_are_one_line(tmp_path: Path) -> None:
    whole = gzip.compress(json.dumps({"traceEvents": made_up()}).encode())
    for number, data in enumerate((b"", b"{", b"[]", b"[" * 100_000, whole[: len(whole) // 2], whole[:2] + b"\0" * 9)):
        file = tmp_path / str(number)
        file.write_bytes(data)
        with pytest.raises(InputError, match="not a trace"):
            read_trace(file, 8)
    with pytest.raises(InputError, match="No such file"):
        read_trace(tmp_path / "missing", 8)


def test_the_work_of_a_trace_is_shared_out() -> None:
    """Computation by GPUs and sequences; the optimizer by what a GPU has of the parameters."""
    speed = Speed(0, 0, "a test", 1, TRACED)
    assert work_of(MODEL, Layout(1), speed)[:] == (0.1, 0.2, 0.03)
    assert work_of(MODEL, Layout(2, tensor=2, sequence=4), speed)[:] == pytest.approx((0.00625, 0.0125, 0.015))
    assert work_of(MODEL, Layout(8, shard=True), speed)[:] == pytest.approx((0.0125, 0.025, 0.00375))
    assert work_of(replace(MODEL, batch=128), Layout(1), speed)[:] == (0.2, 0.4, 0.03)


# ---- the trace of a step ----
LAYOUTS = [
    Layout(16),
    Layout(16, shard=True),
    Layout(8, tensor=2),
    Layout(8, pipeline=2),
    Layout(2, tensor=2, pipeline=4, interleave=2),
]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_trace_ends_with_the_step_and_holds_its_computation(layout: Layout) -> None:
    step = Step(
        load_topology("dgx-a100"), Cluster("dgx-a100", {"nodes": 2}), MODEL, layout, Speed(1, 1, "", 1.5, TRACED)
    )
    timed = step.run(lambda *_: None)
    events = [one for one in trace_of(step, timed)["traceEvents"] if one["ph"] == "X"]
    assert max(one["ts"] + one["dur"] for one in events) == pytest.approx(timed.total * 1e6)
    rows: dict[int, list[tuple[float, float]]] = {}
    for one in events:
        rows.setdefault(one["tid"], []).append((one["ts"], one["ts"] + one["dur"]))
    assert set(rows) == set(range(2 * layout.pipeline))
    for row, spans in rows.items():
        spans.sort()
        if row % 2 == 0:
            assert all(end <= begin + 1e-3 for (_, end), (begin, _) in itertools.pairwise(spans))
            # Computation that communication slows down takes longer.
            assert sum(end - begin for begin, end in spans) >= timed.compute * 1e6 * (1 - 1e-9)


def test_the_verb_reads_and_writes_traces(run: Run, tmp_path: Path) -> None:
    words = ["simulate", "step", "--machine", "dgx-a100", "--nodes", "1"]
    words += ["--model", "parameters=805.5e6,layers=4,hidden=4096,sequence=256,batch=64", "--parallel", "bucket=200M"]
    speed = f"trace={RECORDED},sequences=8,slowdown=1.5"
    code, out, err = run(*words, "--gpu", speed, "--trace", str(tmp_path / "step.json"))
    assert code == 0, err
    told_in_words = " ".join(out.split())  # lines break where the path of the trace lets them
    assert "8 sequences on one GPU: forward" in told_in_words and "it computes 1.5 times as slowly" in told_in_words
    told = json.loads((tmp_path / "step.json").read_text())
    assert told["otherData"]["simulated"] is True
    code, out, _ = run(*words, "--gpu", speed, "--json")
    answer = json.loads(out)
    assert code == 0 and answer["gpu"]["traced"]["sequences"] == 8 and answer["gpu"]["peak"] == 0
    assert answer["compute"] == pytest.approx(25.6e-3, rel=0.01)


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("--gpu", f"trace={RECORDED},peak=1e12", "peak and utilisation are not for a trace"),
        ("--gpu", "sequences=8", "sequences is for trace=FILE"),
        ("--gpu", "slowdown=0.5", "slowdown must be at least 1"),
        ("--gpu", "trace=missing.json", "missing.json"),
        ("--parallel", "placement=data", "placement is one of tensor-data-pipeline"),
        ("--parallel", "sequence=5", "sequence=5 does not divide 16 GPUs"),
        ("--parallel", "expert=2", "expert=2 does not divide 16 GPUs and experts=1"),
        ("--parallel", "interleave=2", "interleave needs stages"),
        ("--parallel", "pipeline=2,interleave=5", "interleave=5 does not divide the 24 layers"),
        ("--model", "parameters=1e9,layers=24,batch=64,active=1e8", "are for a model with experts=8"),
        ("--model", "parameters=1e9,layers=24,batch=64,experts=8,chosen=8,active=9e8", "must be below experts=8"),
        ("--model", "parameters=1e9,layers=24,batch=64,experts=8,chosen=2,active=1e8", "active must be from"),
        ("--model", "parameters=1e9,layers=24,batch=64,gradients=fp4", "gradients is one of bf16"),
    ],
)
def test_bad_input_is_one_line(run: Run, option: str, value: str, said: str) -> None:
    words = ["simulate", "step", "--machine", "dgx-a100", "--model", "parameters=1.3e9,layers=24,batch=64"]
    code, out, err = run(*words, option, value)
    assert (code, out) == (2, "") and said in err.strip().splitlines()[-1]


def test_a_trace_that_waits_for_its_host_is_told_of(run: Run, tmp_path: Path) -> None:
    """10 of 80 us."""
    words = ["simulate", "step", "--machine", "dgx-a100", "--nodes", "1", "--model", "parameters=1e8,layers=4,batch=64"]
    code, out, err = run(*words, "--gpu", f"trace={written(tmp_path, made_up())},sequences=8")
    assert code == 0, err
    assert "for its host, which the profiler slows: no measure of the step" in " ".join(out.split())
    code, out, _ = run(*words, "--gpu", f"trace={RECORDED},sequences=8")
    assert code == 0 and "for its host" not in " ".join(out.split())
