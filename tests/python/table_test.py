"""Tables across ranks: every call beside pyarrow's on the whole table, and what cannot be right."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from rank_jobs import ROOT, example, finish, run, runtime_folder, start

pa = pytest.importorskip("pyarrow")

import table_ranks  # noqa: E402

import waywiser  # noqa: E402
from waywiser import table  # noqa: E402

__all__ = ["runtime_folder"]
TABLES = """
    import pyarrow as pa
    from waywiser import table
    odd = group.rank == 1
    def said(call):
        try:
            call()
        except ww.Error as error:
            print(f"{type(error).__name__}: {error}", flush=True)
    """


def test_one_rank_is_as_pyarrow_has_it() -> None:
    with waywiser.join() as group:
        table_ranks.compare(group, 3)


@pytest.mark.parametrize(
    ("ranks", "seeds"),
    [
        (3, 4),
        (8, 1),
        *(pytest.param(*each, marks=pytest.mark.slow) for each in ((2, 4), (4, 6), (5, 1), (6, 1), (7, 1))),
        *(pytest.param(*each, marks=pytest.mark.long) for each in ((2, 10), (4, 20), (5, 4), (6, 4), (7, 4))),
    ],
)
def test_every_call_is_as_pyarrow_has_it(ranks: int, seeds: int) -> None:
    code, lines, errors = finish(start("run", "-n", str(ranks), sys.executable, table_ranks.__file__, str(seeds)))
    assert (code, errors) == (0, "")
    assert lines == [f"{rank}: {seeds} of each are as pyarrow has them" for rank in range(ranks)]


@pytest.mark.parametrize(
    ("ranks", "seeds"),
    [
        (2, 3),
        pytest.param(4, 6, marks=pytest.mark.slow),
        pytest.param(4, 20, marks=pytest.mark.long),
    ],
)
def test_every_call_is_as_polars_has_it(ranks: int, seeds: int) -> None:
    pytest.importorskip("polars")
    program = Path(__file__).with_name("table_polars_ranks.py")
    code, lines, errors = finish(start("run", "-n", str(ranks), sys.executable, program, str(seeds)))
    assert (code, errors) == (0, "")
    assert lines == [f"{rank}: {seeds} of each are as polars has them" for rank in range(ranks)]


@pytest.mark.slow
def test_the_example_prints_what_the_page_shows() -> None:
    page = (ROOT / "docs/tutorial/13_tables.md").read_text(encoding="utf-8")
    shown = page.split("```text\n", 1)[1].split("```")[0]
    assert example(4, "13_tables.py") == (0, shown.splitlines(), "")


def test_the_typed_program_runs() -> None:
    program = ROOT / "tests/consumers/python/typed_tables.py"
    assert finish(start("run", "-n", "2", sys.executable, program)) == (
        0,
        ["rank 0: every call", "rank 1: every call"],
        "",
    )


@pytest.mark.slow  # tests/table has it with ranks that are not Python
def test_a_rank_that_is_killed_is_an_error_at_all_before_their_timeout() -> None:
    code = """
    a = pa.table({"k": range(100_000), "v": [0.5] * 100_000})
    moved = table.Shuffle(group, a.schema, budget=1 << 16, piece=1 << 14)
    try:
        for insert in range(1000):
            if odd and insert == 3:
                os.kill(os.getpid(), signal.SIGKILL)
            moved.insert(a, on="k")
    except ww.TransferError as error:
        print("rank 1" in str(error), "waited" in str(error), flush=True)
    """
    _, lines, _ = run(3, TABLES + code)
    assert lines == ["True False", "True False"]


def test_what_differs_is_one_error_at_all_ranks_before_a_row_moves() -> None:
    code = """
    a = pa.table({"k": [1, 2], "v": ["x", "y"]})
    b = pa.table({"k": ["1"], "v": ["x"]}) if odd else a
    said(lambda: table.shuffle(group, b, "k"))
    said(lambda: table.merge(group, a, b, "k"))
    said(lambda: table.merge(group, a, pa.table({"k": [1.0]}), "k"))
    said(lambda: table.shuffle(group, a, "x" if odd else "k"))
    said(lambda: table.shuffle(group, a, ["k", "v"] if odd else "k"))
    said(lambda: table.shuffle(group, [1] if odd else a, "k"))
    twice = pa.table([[1], [2]], ["k", "k"])
    said(lambda: table.Shuffle(group, twice.schema if odd else a.schema))
    said(lambda: table.group_by(group, a, "k", [("v", "sum")]))
    said(lambda: table.group_by(group, a, "k", [("v", "median" if odd else "max")]))
    said(lambda: table.sort(group, a, "w" if odd else "k"))
    said(lambda: table.merge(group, a, a, "k", suffix=""))
    listed = pa.table({"k": [[1], [2]], "v": [None, None]})
    said(lambda: table.shuffle(group, listed, "k"))
    said(lambda: table.merge(group, listed, listed, ["v"]))
    view = pa.schema([("s", pa.string_view())])
    said(lambda: table.Shuffle(group, view))
    said(lambda: table.Shuffle(group, a, budget=100))
    said(lambda: table.Shuffle(group, a, parts="3" if odd else 3))
    said(lambda: table.Shuffle(group, a, parts=0 if odd else 2))
    print(table.shuffle(group, a, "k").num_rows in range(5), flush=True)
    """
    status, lines, errors = run(2, TABLES + code)
    assert (status, errors) == (0, "")
    assert lines == sorted(2 * [
        "InputError: rank 1: column 'k' is string, at rank 0 int64",
        "InputError: rank 1: the key 'k' is int64 at the left, 'k' is string at the right",
        "InputError: rank 0: the key 'k' is int64 at the left, 'k' is double at the right",
        "InputError: rank 1: on= has 'x', of which the table has no column",
        "InputError: rank 1: this is 'a shuffle on k, v into 2 parts', at rank 0 'a shuffle on k into 2 parts'",
        "InputError: rank 1: data is a table of pyarrow, polars or pandas, not list",
        "InputError: rank 1: column 'k': there are two of this name",
        "InputError: rank 0: Function 'hash_sum' has no kernel matching input types (string, uint32)",
        "InputError: rank 1: aggregates= has 'median', not sum, count, min, max or mean",
        "InputError: rank 1: by= has 'w', of which the table has no column",
        "InputError: rank 0: with suffix='' two columns of the result have one name",
        "InputError: rank 0: column 'k' is no key: it is list<item: int64>",
        "InputError: rank 0: column 'v' is no key: it is null",
        "UnavailableError: rank 0: column 's': its type, 'vu' in Arrow, is not served",
        "InputError: rank 0: a shuffle of tables: a budget of 100 bytes is less than four pieces of 1048576",
        "InputError: rank 1: parts= is a whole number, not str",
        "InputError: rank 1: parts=0 is out of range",
        "True",
    ])  # fmt: skip


def test_budget_parts_and_nulls() -> None:
    code = """
    import gc
    a = pa.table({"k": range(40_000), "part": [group.rank] * 40_000})
    moved = table.Shuffle(group, a.schema, parts=4, budget=1 << 16, piece=1 << 13)
    moved.insert(a, part=3)  # all rows of all ranks
    moved.complete(0)
    said(lambda: moved.insert(a, part=0))
    said(lambda: moved.insert(a.select(["k"]), part=1))
    said(lambda: moved.insert(a, part=1, on="k"))
    said(lambda: moved.insert(a, part=1.5))
    parts = dict(moved)
    assert sorted(parts) == [group.rank, group.rank + 2]
    if odd:
        assert parts[3]["part"].to_pylist() == [0] * 40_000 + [1] * 40_000
    counts = moved.counts()
    assert counts.most_under_way <= (1 << 16) + 2 * (1 << 13) and counts.waited >= 0
    assert sum(peer.rows_out for peer in counts.peers) == 40_000
    del moved
    gc.collect()
    for part in parts.values():
        part.validate(full=True)
    print(sum(part.num_rows for part in parts.values()), "rows", flush=True)
    moved = table.Shuffle(group, a.schema, parts=1, budget=1 << 20, piece=1 << 13)
    moved.insert(a, part=0)  # rank 1 alone sends
    said(moved.outcome)
    assert [rows.num_rows for _, rows in moved] == ([] if odd else [80_000])
    outcome = moved.outcome()
    assert outcome.busiest == 1 and outcome.bytes >= 640_000 and 0 < outcome.bound and 0 < outcome.seconds
    print(str(outcome).split(",")[0], str(outcome).splitlines()[0].endswith(" of their rate"), flush=True)
    a = pa.table({"k": [1, None], "j": [group.rank, 5], "a": [10, 20]})
    b = pa.table({"k": pa.array([1, None], pa.int64()), "j": [0, 5], "a": ["x", "y"]})
    many, none = np.arange(200_000), np.arange(0)
    long = [pa.table({"k": many if group.rank == owner else none}) for owner in (0, 1)]  # each from one rank alone
    print(table.merge(group, *long, "k", budget=1 << 20, piece=1 << 18).num_rows in range(99_000, 101_000), flush=True)
    for how in ("inner", "outer", "anti"):
        rows = [table.merge(group, a, b, ["k", "j"], how=how, nulls_equal=equal).num_rows for equal in (False, True)]
        print(how, *group.all_reduce(np.array(rows)), flush=True)
    print(table.merge(group, a, b, ["k", "j"], how="left").column_names, flush=True)
    """
    status, lines, errors = run(2, TABLES + code)
    assert (status, errors) == (0, "")
    # Two ranks give each row of b, and rank 0 alone has a k of 1 with a j of 0.
    assert lines == sorted([
        *2 * ["anti 3 1", "inner 2 6", "outer 7 7", "['k', 'j', 'a', 'a_right']"],
        *2 * ["True"],
        "0 rows",
        "80000 rows",
        *2 * ["InputError: a shuffle of tables: this rank has completed part 0"],
        *2 * ["InputError: insert takes on= or part="],
        *2 * ["InputError: outcome comes after the loop over the parts", "rank 1 has sent most True"],
        *2 * ["InputTypeError: part= is a whole number, not float"],
        *2 * ["InputError: insert: the table has 1 columns, not 2"],
    ])  # fmt: skip


def test_anything_that_exports_a_stream_is_a_table() -> None:
    class Exported:
        def __arrow_c_stream__(self, schema: object = None) -> object:
            return pa.table({"k": [1, 2, 3]}).__arrow_c_stream__(schema)

    parts = table.partition(Exported(), "k", 2)
    assert sorted(row["k"] for part in parts for row in part.to_pylist()) == [1, 2, 3]


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_data_frames_come_back_as_theirs(library: str) -> None:
    frames = pytest.importorskip(library)
    frame = frames.DataFrame({"k": [1, 2, 3], "s": ["a", None, "c"]})
    made = table.partition(frame, "k", 2)
    assert {type(each) for each in made} == {type(frame)} and sum(map(len, made)) == 3


def test_without_pyarrow_the_error_says_what_to_install(tmp_path: Path) -> None:
    code = "import sys; sys.modules['pyarrow'] = None\nfrom waywiser import table\ntable.partition(1, 'k', 2)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr.endswith("UnavailableError: waywiser.table needs pyarrow: pip install pyarrow\n")


def test_keys_that_have_no_hash_are_refused() -> None:
    with pytest.raises(waywiser.UnavailableError, match="column 'k' is no key: it is list<item: int64>"):
        table.partition(pa.table({"k": [[1]]}), "k", 2)
    with pytest.raises(waywiser.InputError, match=r"parts= is at least 1"):
        table.partition(pa.table({"k": [1]}), "k", 0)
