"""`waywiser bench --with-compute`: collectives beside a computation, on hosts and on virtual GPUs."""

from __future__ import annotations

import csv
import io
import json
import os
from pathlib import Path

import numpy
import pytest
from rank_jobs import ROOT
from verb_runs import Run

from waywiser import _core
from waywiser.bench import with_compute
from waywiser.bench.with_compute_sides import Exercise, host_side
from waywiser.errors import TransferError

SHORT = ("bench", "--with-compute", "--budget", "0.2", "--sizes", "4K")


@pytest.fixture(autouse=True)
def apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The ranks meet in a folder of the test, and have this package."""
    monkeypatch.setenv("WAYWISER_RUNTIME_DIR", str(tmp_path / "runtime"))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT / "python"), os.environ.get("PYTHONPATH", "")]))


def test_every_collective_of_a_host_is_timed_beside_products_of_matrices(run: Run) -> None:
    code, out, err = run(*SHORT, *with_compute.OPERATIONS, "--memory", "host", "--json")
    assert code == 0, err
    told = json.loads(out)
    assert [row["operation"] for row in told["rows"]] == list(with_compute.OPERATIONS) and told["backend"] == "host"
    assert "simulated" not in told
    for row in told["rows"]:
        assert (row["max_ctas"], row["computation"], row["bytes"]) == (0, "matmul", 4096) and row["samples"] >= 3
        assert min(row[f"{what}_us"] for what in ("alone", "beside", "computation", "at_once")) > 0
        assert row["loses_percent"] == pytest.approx((row["beside_us"] / row["alone_us"] - 1) * 100)


def test_virtual_gpus_have_a_row_for_each_limit_of_blocks_and_a_label(run: Run) -> None:
    code, out, err = run(*SHORT, "all_reduce", "--backend", "virtual_gpu", "--csv")
    assert code == 0, err
    rows = list(csv.DictReader(io.StringIO(out)))
    assert [int(row["max_ctas"]) for row in rows] == list(with_compute.BLOCKS)
    assert {row["label"] for row in rows} == {"Virtual GPUs: not a measurement of any GPU"}
    code, out, err = run(*SHORT, "all_gather", "--backend", "virtual_gpu")
    assert code == 0 and "VIRTUAL GPUS: NOT A MEASUREMENT" in out and out.count("all_gather") == 5, err


def test_wrong_data_end_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """An exercise sees an element that no call has brought, of every collective."""
    monkeypatch.setenv("WAYWISER_RANK", "0")
    monkeypatch.setenv("WAYWISER_SIZE", "1")
    side = host_side("host")
    for operation in with_compute.OPERATIONS:
        exercise: Exercise = side.exercise(operation, 4096, 1, 2)
        exercise.fill()
        seed = exercise._seed
        count = 1024

        def of(rank: int, first: int = 0, seed: int = seed) -> numpy.ndarray:
            return ((numpy.arange(1024) + seed + 3 * rank + first) % 16).astype("f4")

        first = count if operation in ("reduce_scatter", "all_to_all") else 0
        parts = [of(rank, first) for rank in range(2)]
        right = of(0) if operation == "broadcast" else sum(parts) if "reduce" in operation else numpy.concatenate(parts)
        exercise.take[:] = right
        assert exercise.is_right(), operation
        exercise.take[-1] += 1
        assert not exercise.is_right(), operation


def test_a_row_says_what_each_loses() -> None:
    row = with_compute.Row("all_reduce", 4096, 16, "matmul", 10, 3, 1e-5, 1.5e-5, 1e-4, 1.2e-4, 1.6e-4)
    assert (row.loses, row.computation_loses) == (pytest.approx(50), pytest.approx(20))
    line = with_compute.tables([row], "")[-1].split()
    assert line[:3] == ["all_reduce", "4096", "16"] and line[-1] == "0.80"


def test_ranks_that_fail_are_an_error(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(with_compute._COMPUTATIONS, "host", ())
    monkeypatch.setattr(with_compute, "BLOCKS", (-1,))
    with pytest.raises(TransferError, match="max_ctas"):
        with_compute.rows(with_compute.Wanted("virtual_gpu", ["all_reduce"], [8], 2, 0.1))


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["latency"], "latency: write some of all_reduce, "),
        (["--memory", "gpu-to-host"], "write --memory host or gpu"),
        (["--backend", "host", "--memory", "gpu"], "--memory gpu is not of --backend host"),
        (["--backend", "cuda"], "no NVIDIA driver is loaded; --backend virtual_gpu"),
        (["--plot", "x.png"], "--plot is for coalescing, merge and offload"),
        (["--against", "nccl"], "--against is not for --with-compute, which starts its ranks itself"),
        (["--json", "--csv"], "write one of them"),
    ],
)
def test_bad_input_is_one_line(run: Run, monkeypatch: pytest.MonkeyPatch, words: list[str], why: str) -> None:
    monkeypatch.setattr(_core, "why_no_cuda", lambda: "no NVIDIA driver is loaded")
    code, out, err = run(*SHORT, *words)
    assert (code, out) == (2, "") and why in err and err.count("\n") == 1
