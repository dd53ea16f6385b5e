"""`waywiser bench --from kernel`: calls that a kernel makes, in host memory and on virtual GPUs."""

from __future__ import annotations

import json
from typing import Any

import pytest
from rank_jobs import runtime_folder, start

__all__ = ["runtime_folder"]
pytestmark = pytest.mark.slow
OPERATIONS = ["put", "get", "put_message", "signal", "atomics", "barrier"]


def bench(*words: str) -> tuple[int, str, str]:
    process = start("bench", *words)
    said, errors = process.communicate(timeout=100)
    return process.returncode, said, errors


@pytest.mark.parametrize("memory", [["--memory", "host"], ["--backend", "virtual_gpu"]])
def test_each_call_is_timed_and_checked(memory: list[str]) -> None:
    code, said, errors = bench("--from", "kernel", *memory, "--sizes", "8,24K", "--budget", "3", "--json")
    assert code == 0, errors
    rows: list[dict[str, Any]] = json.loads(said)["rows"]
    assert [row["operation"] for row in rows] == [
        "put",
        "put",
        "get",
        "get",
        "put_message",
        "put_message",
        *OPERATIONS[3:],
    ]
    assert {row["mode"] for row in rows} == {"kernel"} and all(row["us"] > 0 for row in rows)


def test_the_table_says_who_calls() -> None:
    code, said, errors = bench("barrier", "--from", "kernel", "--memory", "host", "--budget", "1", "-n", "3")
    assert code == 0, errors
    assert "# 3 ranks, host, called by a kernel; medians" in said


def test_nvshmem_is_left_out_in_one_line() -> None:
    words = ["--memory", "host", "--budget", "1", "--against", "nvshmem"]
    code, said, errors = bench("signal", "--from", "kernel", *words)
    assert code == 0, errors
    assert "# nvshmem left out: " in said


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["latency", "--from", "kernel"], "--from kernel: latency is not one of put, get, put_message, signal,"),
        (["signal"], "signal: only kernels make it: write --from kernel"),
        (["put", "--from", "gpu"], "--from 'gpu': write host or kernel"),
        (["put", "--from", "kernel", "--mode", "graph"], "--from kernel: a kernel makes the calls"),
        (["put", "--from", "kernel", "--against", "nccl"], "--against 'nccl': write some of nvshmem"),
    ],
)
def test_bad_input_gets_one_line(words: list[str], why: str) -> None:
    code, said, errors = bench(*words)
    assert (code, said) == (2, "")
    assert errors.count("\n") <= 1 and why in errors, errors


def test_gpus_and_hosts_do_not_share_a_heap() -> None:
    words = ["--memory", "host-to-gpu", "--backend", "virtual_gpu", "--budget", "1", "--sizes", "8"]
    _, said, errors = bench("put", "--from", "kernel", *words)
    assert "a heap is in the memory of the hosts or of the GPUs" in said + errors
