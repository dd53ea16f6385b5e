"""Columns of more than 2^31 bytes, whose offsets and lengths no 32 bits hold."""

from __future__ import annotations

import pytest
from rank_jobs import run, runtime_folder

pytestmark = pytest.mark.slow
pytest.importorskip("pyarrow")

__all__ = ["runtime_folder"]
PROGRAM = """
import numpy as np, pyarrow as pa, waywiser as ww
from waywiser import table
group = ww.join(timeout=120)
WIDTH = 1000  # bytes of a text
LETTERS = np.frombuffer(np.random.default_rng(1).bytes(WIDTH + 1020), "u1") % 96 + 32
WINDOWS = np.lib.stride_tricks.sliding_window_view(LETTERS, WIDTH)  # a text tells the number of its row, modulo a prime
def bytes_of(rows):
    return WINDOWS[rows % 1021]
"""


def test_texts_come_whole_in_one_column() -> None:
    code = """
    mine = 1_150_000
    def texts(first, rows):
        data = bytes_of(np.arange(first, first + rows))
        offsets = np.arange(rows + 1, dtype=kind[1]) * WIDTH
        return pa.Array.from_buffers(kind[0], rows, [None, pa.py_buffer(offsets), pa.py_buffer(data)])
    for kind in ((pa.string(), "i4"), (pa.large_string(), "i8")):
        first = group.rank * mine
        given = pa.table({"row": np.arange(first, first + mine), "text": texts(first, mine)})
        moved = table.Shuffle(group, given.schema, parts=1)
        moved.insert(given, part=0)
        del given
        come = dict(moved)
        if group.rank == 0:
            (rows,) = come.values()
            assert rows.num_rows == 2 * mine and rows["row"].to_numpy().tolist() == [*range(2 * mine)]
            at, bytes_of_column = 0, 0
            for chunk in rows["text"].chunks:
                offsets = np.frombuffer(chunk.buffers()[1], kind[1])[chunk.offset:][: len(chunk) + 1]
                assert (np.diff(offsets) == WIDTH).all()
                found = np.frombuffer(chunk.buffers()[2], "u1")[offsets[0] : offsets[-1]].reshape(-1, WIDTH)
                assert np.array_equal(found, bytes_of(np.arange(at, at + len(chunk))))
                at, bytes_of_column = at + len(chunk), bytes_of_column + found.nbytes
            assert bytes_of_column > 1 << 31
            del rows, chunk, found
        del come, moved
    print("whole", flush=True)
    """
    status, lines, errors = run(2, code, program=PROGRAM)
    assert (status, lines, errors) == (0, ["whole", "whole"], "")


def test_an_array_goes_in_one_message() -> None:
    code = """
    rows = 2_200_000 if group.rank == 0 else 0
    given = {"v": bytes_of(np.arange(rows))}
    moved = table.ColumnShuffle(group, given, parts=2, piece=3 << 30)
    moved.insert(given, rows=[rows], to=[1])
    del given
    ((part, come),) = moved
    assert (part, len(come["v"])) == (group.rank, 2_200_000 if group.rank else 0)
    assert group.rank == 0 or come["v"].nbytes > 1 << 31
    for first in range(0, len(come["v"]), 10_000):
        assert np.array_equal(come["v"][first : first + 10_000], bytes_of(np.arange(first, first + 10_000)))
    print("whole", flush=True)
    """
    status, lines, errors = run(2, code, program=PROGRAM)
    assert (status, lines, errors) == (0, ["whole", "whole"], "")
