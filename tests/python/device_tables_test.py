"""Rows on GPUs by Arrow's C device interface, both ways, on virtual GPUs. Not tried with cuDF's own."""

from __future__ import annotations

from pathlib import Path

import pytest
from rank_jobs import NO_PLAN, run, runtime_folder

pytest.importorskip("pyarrow")

__all__ = ["runtime_folder"]
PROGRAM = f"""
import sys, numpy as np, waywiser as ww
sys.path.insert(0, {str(Path(__file__).parent)!r})
import pyarrow as pa
from made_up_device_table import MadeUpTable, read_array, read_stream
from waywiser import table
gpus = ww.virtual_gpus(2)
group = ww.join(gpus=gpus, timeout=20)
rank, size = group.rank, group.size
def made(first, rows, gpu=rank, device=None):
    keys = np.arange(first, first + rows)
    return MadeUpTable(gpus, gpu, {{"k": keys, "half": (keys / 2).astype("f4")}}, device)
def said(kind, call):
    try:
        call()
    except kind as error:
        return str(error)
    raise AssertionError("not refused")
"""


def right(code: str) -> None:
    status, lines, errors = run(2, code, program=PROGRAM)
    assert (status, lines, errors.replace(NO_PLAN, "")) == (0, ["right", "right"], "")


def test_rows_go_from_one_gpu_to_another_and_are_taken_once() -> None:
    code = """
    one = made(1000 * rank, 300)
    moved = table.DeviceShuffle(group, one if rank else one.schema, gpu=rank, piece=1 << 10, budget=1 << 12)
    for part in range(size):
        moved.insert(one, part=part)
    moved.insert(made(7, 1), part=0)
    before = one.released
    ((part, rows),) = moved
    assert (part, len(rows), rows.schema) == (rank, 300 * size + (size if rank == 0 else 0), one.schema)
    assert before >= 2, before
    assert "take __arrow_c_device_stream__" in said(ww.InputError, rows.__arrow_c_device_array__)
    del moved
    found = read_stream(group, gpus, rank, rows)
    wanted = []
    for source in range(size):
        wanted += [*range(1000 * source, 1000 * source + 300), *([7] if rank == 0 else [])]
    assert found["k"].tolist() == wanted and (found["half"] == found["k"] / 2).all()
    print("right", flush=True)
    """
    right(code)


def test_one_batch_is_an_array_and_streams_are_inserted() -> None:
    code = """
    first = table.DeviceShuffle(group, made(0, 1), gpu=rank)
    first.insert(made(10 * rank, 5), part=(rank + 1) % size)
    rows = dict(first)[rank]
    again = table.DeviceShuffle(group, rows.schema, gpu=rank)
    again.insert(rows, part=(rank + 1) % size)  # a stream, back to where they were
    back = dict(again)[rank]
    assert read_array(group, gpus, rank, back)["k"].tolist() == [*range(10 * rank, 10 * rank + 5)]
    assert "taken already" in said(ww.InputError, back.__arrow_c_device_array__)
    print("right", flush=True)
    """
    right(code)


def test_rows_elsewhere_and_what_is_no_table_are_refused() -> None:
    code = """
    moved = table.DeviceShuffle(group, made(0, 1).schema, gpu=rank)
    words = said(ww.InputError, lambda: moved.insert(made(0, 3, device=7), part=0))
    wanted = f"rows in the memory of device 7 of type 2 in Arrow, not of gpu{rank}, device {rank} of type 2"
    assert words == wanted, words
    assert "no __arrow_c_device_array__" in said(ww.InputTypeError, lambda: moved.insert([1], part=0))
    assert "a whole number" in said(ww.InputTypeError, lambda: moved.insert(made(0, 1), part="0"))
    assert dict(moved)[rank].rows == 0
    wrong = [1] if rank else made(0, 1)
    words = said(ww.InputError, lambda: table.DeviceShuffle(group, wrong, gpu=rank))
    assert words == "rank 1: schema= is one of pyarrow, or a table with it, not list", words
    print("right", flush=True)
    """
    right(code)
