"""Tables that are dicts of arrays: beside the calls for tables of pyarrow, and what cannot be right."""

from __future__ import annotations

import sys

import pytest
from rank_jobs import HAS_TORCH, finish, run, runtime_folder, start

pa = pytest.importorskip("pyarrow")

import numpy  # noqa: E402
import table_columns_ranks as ranks  # noqa: E402

import waywiser  # noqa: E402
from waywiser import table  # noqa: E402

__all__ = ["runtime_folder"]
LIBRARIES = ["numpy", *(["torch"] if HAS_TORCH else [])]


@pytest.mark.parametrize("library", LIBRARIES)
def test_rows_have_the_parts_that_tables_of_pyarrow_give_them(library: str) -> None:
    chance = numpy.random.default_rng(1)
    for kind in ("int8", "uint8", "int16", "int32", "int64", "bool"):
        keys = chance.integers(-(1 << 62), 1 << 62, 500).astype(kind)
        data = {"k": keys, "o": chance.integers(0, 9, 500), "row": numpy.arange(500)}
        for on in (["k"], ["k", "o"], ["o", "k"]):
            wanted = table.partition(pa.table(data), on, 7)
            got = table.partition(ranks.in_library(data, library), on, 7)
            rows = [each["row"].to_pylist() for each in wanted]
            assert [list(ranks.plain(each)["row"]) for each in got] == rows, kind


@pytest.mark.parametrize("library", LIBRARIES)
def test_one_rank_is_as_pyarrow_has_it(library: str) -> None:
    with waywiser.join() as group:
        ranks.compare(group, library, 3)


@pytest.mark.parametrize("library", LIBRARIES)
def test_three_ranks_are_as_pyarrow_has_them(library: str) -> None:
    code, lines, errors = finish(start("run", "-n", "3", sys.executable, ranks.__file__, library, "4"))
    assert (code, errors) == (0, "")
    assert lines == [f"{rank}: 4 of each are as pyarrow has them" for rank in range(3)]


def test_what_differs_is_one_error_at_all_ranks_before_a_row_moves() -> None:
    code = """
    from waywiser import table
    odd = group.rank == 1
    def said(call):
        try:
            call()
        except ww.Error as error:
            print(f"{type(error).__name__}: {error}", flush=True)
    a = {"k": np.arange(3), "v": np.ones(3)}
    said(lambda: table.shuffle(group, a, "x" if odd else "k"))
    said(lambda: table.shuffle(group, a, "v"))
    said(lambda: table.shuffle(group, {"k": np.arange(3, dtype="i4"), "v": np.ones(3)} if odd else a, "k"))
    said(lambda: table.shuffle(group, {"k": np.arange(3), "v": np.ones(2)} if odd else a, "k"))
    said(lambda: table.shuffle(group, {"k": [1]} if odd else a, "k"))
    said(lambda: table.merge(group, a, a, "k", how="left"))
    said(lambda: table.merge(group, a, [1] if odd else a, "k"))
    said(lambda: table.merge(group, a, {"k": np.arange(3, dtype="u1")}, "k"))
    said(lambda: table.merge(group, a, a, ["k", "v"]))
    said(lambda: table.merge(group, a, a, "k", suffix=""))
    said(lambda: table.ColumnShuffle(group, a, memory=10))
    said(lambda: table.ColumnShuffle(group, a, parts=0 if odd else None))
    moved = table.ColumnShuffle(group, a)
    said(lambda: moved.insert({"k": np.arange(3)} if odd else a, on="k"))
    said(lambda: moved.insert(a, rows=[2, 2] if odd else [1, 2], to=[0, 1]))
    said(lambda: moved.insert(a, rows=[1, 2], to=[0, 7] if odd else [0, 1]))
    said(lambda: moved.insert(a))
    moved.insert(a, on="k")
    print(sum(len(rows["k"]) for _, rows in moved))
    """
    _, lines, _ = run(2, code)
    said = [line for line in lines if ":" in line]
    assert sum(int(line) for line in lines if ":" not in line) == 6
    assert len(said) == 32 and sorted(said[::2]) == sorted(said[1::2]), said
    for words in (
        "rank 1: on= has 'x', of which the table has no column",
        "rank 0: the key 'v' is float64 in host memory: keys of arrays are integers",
        "rank 1: column 'k' is int32 in host memory, of NumPy, at rank 0 int64 in host memory, of NumPy",
        "rank 1: data has columns of different lengths",
        "rank 1: data has columns of builtins, not of PyTorch alone or NumPy alone",
        "rank 0: how='left' of tables of arrays, which have no nulls: it is one of inner, semi, anti",
        "rank 1: right is no dict of arrays, unlike the other table",
        "rank 0: the key 'k' is int64 in host memory at the left, 'k' is uint8 in host memory at the right",
        "rank 0: a merge of tables of arrays has one column of keys",
        "rank 0: suffix='': two columns of the result have one name",
        "rank 0: memory= is for tables on GPUs",
        "rank 1: parts=0, memory=None, piece=536870912: each is at least 1",
        "rank 1: rows= has 4 rows in 2 runs, to= 2 parts: not the table's",
        "rank 1: to= has parts that are not in 0 to 1",
        "rank 0: insert takes on=, or rows= and to=",
    ):
        assert any(words in line for line in said), words
