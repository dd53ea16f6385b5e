"""Shuffles of tables: by which ways pieces go, what exceeds the memory, keys with many rows."""

from __future__ import annotations

from pathlib import Path

import pytest
from rank_jobs import run, runtime_folder

pytest.importorskip("pyarrow")

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


def test_what_exceeds_the_memory_goes_to_files_and_comes_back(tmp_path: Path) -> None:
    folder = tmp_path / "spill"
    folder.mkdir()
    code = f"""
    from pathlib import Path
    folder = Path({str(folder)!r})
    a = pa.table({{"k": range(40_000), "text": ["x" * (i % 50) for i in range(40_000)]}})
    def moved(**options):
        made = table.Shuffle(group, a.schema, parts=6, budget=1 << 16, piece=1 << 13, **options)
        made.insert(a, on="k")
        return made
    wanted = dict(moved())
    part = moved(memory=1 << 17, spill=folder)
    found = {{}}
    for number, rows in part:
        rows.validate(full=True)
        found[number] = rows
    assert found.keys() == wanted.keys() and all(found[number].equals(wanted[number]) for number in wanted)
    counts = part.counts()
    come = sum(peer.bytes_in for peer in counts.peers)
    assert come - (1 << 17) - (1 << 13) <= counts.spilled <= come, (counts.spilled, come)
    del part
    group.barrier()
    assert not list(folder.iterdir())
    said(lambda: table.Shuffle(group, a, memory=4096))
    said(lambda: table.Shuffle(group, a, spill=folder, memory=0))
    said(lambda: dict(moved(memory=4096, spill=folder / "nowhere" if odd else folder)))
    """
    _, lines, errors = run(2, TABLES + code)
    together = "a limit of memory and a folder for what is above it come together"
    assert lines[:4] == sorted([
        *2 * ["InputError: rank 0: memory=0 is out of range"],
        *2 * [f"InputError: rank 0: a shuffle of tables: {together}"],
    ]), (lines, errors)  # fmt: skip
    assert len(lines) == 6 and all("nowhere" in line for line in lines[4:]), lines


def test_joins_sums_and_order_keep_their_budget_and_memory(tmp_path: Path) -> None:
    folder = tmp_path / "spill"
    folder.mkdir()
    code = f"""
    made = []
    start = table.Shuffle._start
    table.Shuffle._start = lambda shuffle, *given: (made.append(shuffle), start(shuffle, *given))[1]
    rows = np.arange(40_000)
    a = pa.table({{"k": rows * 7 % 40_009, "a": rows + 40_000 * group.rank}})
    b = pa.table({{"k": rows * 5 % 40_009, "text": ["y" * (i % 20) for i in rows]}})
    calls = {{
        "merge": lambda **options: table.merge(group, a, b, "k", **options),
        "group_by": lambda **options: table.group_by(group, a, "k", [("a", "sum")], **options),
        "sort": lambda **options: table.sort(group, a, [("k", "descending"), "a"], **options),
    }}
    small = {{"budget": 1 << 16, "piece": 1 << 13, "parts": 6, "memory": 1 << 16, "spill": {str(folder)!r}}}
    for name, call in calls.items():
        made.clear()
        wanted, got = (pa.concat_tables(group.all_gather_objects(call(**options))) for options in ({{}}, small))
        if name != "sort":
            order = [(column, "ascending") for column in got.column_names]
            wanted, got = wanted.sort_by(order), got.sort_by(order)
        assert len(got) > 39_000 and got.equals(wanted), name
        for counts in (shuffle.counts() for shuffle in made[len(made) // 2 :]):
            come = sum(peer.bytes_in for peer in counts.peers)
            assert counts.most_under_way <= (1 << 16) + 2 * (1 << 13), (name, counts.most_under_way)
            assert 0 < come - (1 << 16) - (1 << 14) <= counts.spilled <= come, (name, counts.spilled, come)
        said(lambda: call(parts=3 if odd else 2))
        said(lambda: call(memory=4096))
    made.clear()
    group.barrier()
    assert not os.listdir({str(folder)!r})
    """
    status, lines, errors = run(2, TABLES + code)
    assert (status, errors) == (0, ""), errors
    together = "a limit of memory and a folder for what is above it come together"
    wrong = "parts=3 is no multiple of 2, the number of ranks"
    assert lines == sorted([
        *6 * [f"InputError: rank 1: {wrong}"],
        *6 * [f"InputError: rank 0: a shuffle of tables: {together}"],
    ]), lines  # fmt: skip


def test_a_key_with_many_rows_is_split_in_a_join() -> None:
    code = """
    from waywiser.table.skew import buckets, split_of
    rows = 30_000
    keys = np.where(np.arange(rows) % 5 < 4, 7, np.arange(rows) + 100 + rows * group.rank)  # four of five are 7
    many = pa.table({"k": keys, "a": np.arange(rows) + rows * group.rank})
    few = pa.table({"k": [7, 100 + 4 + rows * group.rank], "b": [group.rank, 5]})
    assert len(set(buckets(few, ["k"]).tolist())) == 2
    sides = [(many, ["k"]), (few, ["k"])]
    hot = {int(buckets(few, ["k"])[0])}
    assert [split_of(group, sides, how) for how in ("inner", "left", "semi", "anti")] == 4 * [(hot, set())]
    assert split_of(group, sides, "right") == split_of(group, sides, "outer") == (set(), set())
    assert split_of(group, sides[::-1], "right") == split_of(group, sides[::-1], "inner") == (set(), hot)
    assert split_of(group, [sides[0], sides[0]], "inner") == (hot, set()), "one side alone"
    assert split_of(group, [(many.slice(0, 10), ["k"]), sides[1]], "left") == (set(), set()), "too few to tell"
    for how in ("inner", "left", "semi", "anti", "right"):
        given = (few, many) if how == "right" else (many, few)
        made = table.merge(group, *given, "k", how=how, budget=1 << 20, piece=1 << 18)
        share = made.num_rows
        told = np.pad(made["a"].to_numpy(), (0, 150_000 - share), constant_values=-1)
        numbers = group.all_gather(told).ravel()
        numbers = numbers[numbers >= 0]
        wanted = {"inner": 3 * 72_000 + 3, "left": 3 * 72_000 + 18_000, "right": 3 * 72_000 + 18_000}
        wanted |= {"semi": 72_003, "anti": 17_997}
        assert len(numbers) == wanted[how], (how, len(numbers))
        assert how == "anti" or share < 0.4 * len(numbers), (how, share, len(numbers))
        print(how, len(numbers), int(numbers.sum()), flush=True)
    """
    status, lines, errors = run(3, TABLES + code)
    assert (status, errors) == (0, ""), errors
    seven = sum(number for number in range(90_000) if number % 5 < 4)
    alone = sum(number for number in range(90_000) if number % 5 == 4)
    met = 4 + 30_004 + 60_004
    sums = {"inner": 3 * seven + met, "left": 3 * seven + alone, "right": 3 * seven + alone}
    sums |= {"semi": seven + met, "anti": alone - met}
    assert {line.split()[0]: int(line.split()[2]) for line in lines} == sums and len(lines) == 15


def test_the_ways_of_pieces_are_told_before_and_after() -> None:
    code = """
    import json
    from waywiser.table.paths import by_way
    a = pa.table({"k": range(100_000)})
    moved = table.Shuffle(group, a.schema, parts=group.size, budget=1 << 22, piece=1 << 18)
    to = (group.rank + 1) % group.size
    moved.insert(a, part=to)
    told = moved.explain()
    said(lambda: moved.explain(0))
    assert sorted(told) == [rank for rank in range(group.size) if rank != group.rank]
    assert set(moved.explain(8).values()) == {"lane"}
    for part, rows in moved:
        pass
    ways = moved.counts().peers[to].ways
    assert {way.way for way in ways} == {told[to]} and moved.counts().peers[to].seconds_out > 0
    outcome = moved.outcome()
    assert [(path.source, path.destination) for path in outcome.paths] == [(0, 1), (1, 2), (2, 0)]
    assert all(path.bytes >= 800_000 and path.seconds > 0 for path in outcome.paths)
    read = json.loads(json.dumps(outcome.as_json()))
    assert read["paths"][0]["ways"][0]["way"] == told[to] and read["paths"][0]["bytes"] == outcome.paths[0].bytes
    last = str(outcome).splitlines()[1]
    assert last.startswith(f"{told[to]}: ") and "between 3 pairs; slowest " in last, last
    made = [table.PathOutcome(0, 1, [table.WayCounts("a", 2, 4096), table.WayCounts("b", 1, 100)], 1e-3)]
    made.append(table.PathOutcome(1, 0, [table.WayCounts("a", 1, 1024)], 1e-3))
    for line in by_way(made) if odd else []:
        print(line, flush=True)
    """
    status, lines, errors = run(3, TABLES + code)
    assert (status, errors) == (0, "")
    assert lines == sorted([
        *3 * ["InputError: size=0 is out of range"],
        "a: 5 KiB in 3 pieces between 2 pairs; slowest 1 to 0, 1 KiB in 1.00 ms: 1.02 MB/s",
        "b: 100 B in 1 piece between 1 pair",
    ])  # fmt: skip
