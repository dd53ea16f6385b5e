"""Chakra execution traces: a GPU's computation by phase, from messages that this test writes itself."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from verb_runs import Run

from waywiser.errors import InputError
from waywiser.simulator.chakra_trace import is_chakra, read_chakra
from waywiser.simulator.profiler_trace import read_trace

COMPUTES, COMMUNICATES = 4, 7


def varint(value: int) -> bytes:
    written = bytearray()
    while value > 127:
        written.append(value & 127 | 128)
        value >>= 7
    return bytes([*written, value])


def number(field: int, value: int) -> bytes:
    return varint(field << 3) + varint(value)


def text(field: int, value: bytes) -> bytes:
    return varint(field << 3 | 2) + varint(len(value)) + value


def node(
    name: int, words: str, caller: int = 0, micros: int = 0, gpu: bool = False, thread: int = 1, kind: int = COMPUTES
) -> bytes:
    """An empty string and numbers of 4 and 8 bytes beside are to be passed over."""
    message = number(1, name) + text(2, words.encode()) + number(3, kind) + number(7, micros)
    message += text(4, varint(caller)) if name % 2 else number(4, caller)  # packed or one by one
    message += text(8, text(1, b"")) + text(10, text(1, b"is_cpu_op") + number(27, int(not gpu)))
    message += text(10, text(1, b"tid") + number(9, thread)) + text(10, text(1, b"x") + varint(3 << 3 | 1) + bytes(8))
    return message + varint(12 << 3 | 5) + bytes(4)


def file_of(*nodes: bytes) -> bytes:
    return b"".join(varint(len(one)) + one for one in (text(1, b"0.0.4"), *nodes))


STEP = (
    node(2, "aten::mm"),
    node(3, "gemm", 2, 20, gpu=True, thread=7),
    node(4, "autograd::engine::evaluate_function: MmBackward0", thread=2),
    node(5, "aten::mm", 4, thread=2),
    node(6, "gemm", 5, 40, gpu=True, thread=7),
    node(8, "ncclDevKernel_AllReduce", 5, 30, gpu=True, thread=7, kind=COMMUNICATES),
    node(10, "Optimizer.step#SGD.step", micros=500),
    node(11, "aten::add_", 10),
    node(12, "sgd", 11, 10, gpu=True, thread=7),
    node(14, "aten::mm", 13, thread=2),  # its caller is not in the file: the thread says what it is
    node(15, "gemm", 14, 300, gpu=True, thread=7),
)


def test_a_step_is_taken_apart_by_callers_and_threads(tmp_path: Path) -> None:
    file = tmp_path / "rank0.et"
    file.write_bytes(file_of(*STEP))
    found = read_trace(file, 8)
    micros = [round(seconds * 1e6, 2) for seconds in (found.forward, found.backward, found.optimizer, found.idle)]
    assert (micros, found.steps, found.sequences) == ([20, 340, 10, 0], 1, 8)


def test_several_steps_are_averaged() -> None:
    found = read_chakra(file_of(*STEP, node(20, "ProfilerStep#3"), node(21, "ProfilerStep#4")))
    assert found.steps == 2 and found.took["backward"].seconds == pytest.approx(340e-6 / 2)


def test_simulate_step_takes_it(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "rank0.et"
    file.write_bytes(file_of(*STEP))
    model = ("--model", "parameters=1e9,layers=8,batch=128")
    code, out, err = run("simulate", "step", "--machine", "dgx-a100", *model, "--gpu", f"trace={file}")
    assert code == 0 and "backward 340" in out, err


def test_a_file_without_backward_pass_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "rank0.et"
    file.write_bytes(file_of(*STEP[:2]))
    with pytest.raises(InputError, match="no kernel of a backward pass"):
        read_trace(file, 8)
    file.write_bytes(file_of(*STEP)[:-3])
    with pytest.raises(InputError, match="not a trace of"):
        read_trace(file, 8)


def test_a_circle_of_callers_ends() -> None:
    around = (node(1, "a", 2, thread=3), node(2, "b", 1, thread=3), node(4, "k", 1, 5, gpu=True))
    assert sum(one.seconds for one in read_chakra(file_of(*around)).took.values()) == pytest.approx(5e-6)


@given(st.binary(max_size=200), st.integers(0, 400))
def test_other_bytes_are_refused_and_nothing_else(other: bytes, at: int) -> None:
    whole = file_of(*STEP)
    for data in (other, whole[:at] + other + whole[at:], whole[: at % len(whole)] + other):
        is_chakra(data)
        with contextlib.suppress(ValueError):
            read_chakra(data)
