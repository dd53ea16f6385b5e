"""`waywiser bench merge`: tables joined over ranks of this machine, and the exchange on machines that are not here."""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path

import numpy
import pytest
from rank_jobs import ROOT
from verb_runs import Run

import waywiser
from waywiser.bench import merge
from waywiser.simulator.exchange import exchange
from waywiser.topology import load_topology

pa = pytest.importorskip("pyarrow")

from waywiser.bench import merge_rank  # noqa: E402

QUICK = ("bench", "merge", "--sizes", "64K", "--budget", "0.3")


@pytest.fixture(autouse=True)
def apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The ranks meet in a folder of the test, and have this package."""
    monkeypatch.setenv("WAYWISER_RUNTIME_DIR", str(tmp_path / "runtime"))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT / "python"), os.environ.get("PYTHONPATH", "")]))


def test_the_tables_match_as_often_as_they_say_whoever_joins_them() -> None:
    made = [merge_rank.Tables(rank, 3, 1000, 0.3) for rank in range(3)]
    left, right = (pa.concat_tables([getattr(each, side) for each in made]) for side in ("left", "right"))
    assert len(set(left["key"].to_pylist())) == len(set(right["key"].to_pylist())) == 3000
    joined = left.join(right, "key", join_type="inner")
    assert joined.num_rows == 900
    owners = Counter(number // 1000 for number in joined["left"].to_pylist())
    assert all(abs(count - 300) < 30 for count in owners.values())
    columns = [joined[name].to_numpy().view(numpy.uint64) for name in ("key", "left", "right")]
    assert merge_rank.hash_of(*columns) == sum(each.hash for each in made) % 2**64
    columns[2] = columns[2] + (columns[2] == columns[2][0])
    assert merge_rank.hash_of(*columns) != sum(each.hash for each in made) % 2**64


def test_each_way_is_measured_and_its_result_checked(run: Run) -> None:
    code, out, err = run(*QUICK, "-n", "3", "--json")
    assert code == 0, err
    told = json.loads(out)
    assert [row["way"] for row in told["rows"]] == list(merge.WAYS) and told["left_out"] == {}
    for row in told["rows"]:
        assert row["ranks"] == 3 and row["bytes"] == 3 * 2 * 65536 and row["rounds"] >= 1
        assert row["rows"] == 3 * int(4096 * 0.3)
        assert row["us"] >= max(row["exchange_us"], row["join_us"]) > 0 and row["gb_per_s"] > 0
        assert sum(row["ways"].values()) > 100_000
    assert set(told["rows"][1]["ways"]) <= {"ucx", "lane"} and "simulated" not in told


def test_a_wrong_result_is_an_error() -> None:
    with waywiser.join() as group:
        made = merge_rank.Tables(0, 1, 100, 0.3)
        result = made.left.join(made.right, "key", join_type="inner")
        merge_rank.check(group, made, result)
        with pytest.raises(waywiser.CorruptionError, match="29 rows in place of 30"):
            merge_rank.check(group, made, result.slice(1))
        wrong = result.set_column(1, "left", pa.array([7] * 30))
        with pytest.raises(waywiser.CorruptionError, match="another hash"):
            merge_rank.check(group, made, wrong)


def test_a_way_that_fails_is_named(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merge, "WAYS", {"plan": {"WAYWISER_MAILBOX": "nonsense"}})
    code, out, err = run(*QUICK)
    assert (code, out) == (2, "")
    assert "plan, 64 KiB: InputError: " in err and "WAYWISER_MAILBOX" in err
    assert err.splitlines()[-1] == "waywiser: merge: nothing could be timed"


def test_the_published_order_comes_out_of_the_simulation(run: Run, tmp_path: Path) -> None:
    code, out, err = run("bench", "merge", "--machine", "dgx-1v", "--json")
    assert code == 0, err
    told = json.loads(out)
    rates = {row["way"]: row["gb_per_s"] for row in told["rows"]}
    order = ["tcp", "nvlink", "infiniband", "infiniband+nvlink"]
    assert sorted(order, key=lambda way: rates[way]) == order and rates["plan"] >= max(rates.values()) * 0.99
    published = {row["way"]: row["published_gb_per_s"] for row in told["rows"] if row["published_gb_per_s"]}
    assert published == {"tcp": 1.9, "nvlink": 3.9, "infiniband": 11.7}
    assert told["simulated"] and told["warning"] == "simulated dgx-1v"
    assert rates["nvlink"] / rates["tcp"] == pytest.approx(3.9 / 1.9, rel=0.3)
    assert rates["infiniband"] / rates["nvlink"] == pytest.approx(11.7 / 3.9, rel=0.3)
    page = (ROOT / "docs/tables.md").read_text(encoding="utf-8").splitlines()
    for way, rate in rates.items():
        (line,) = [line for line in page if line.startswith(f"| `{way}`")]
        assert line.split("|")[3].strip() == f"{rate:.3g}", "docs/tables.md has another figure"
    picture = tmp_path / "merge.svg"
    code, out, err = run("bench", "merge", "--machine", "dgx-1v", "--plot", str(picture))
    assert code == 0 and "SIMULATED DGX-1V" in out and "nvlink / tcp: published 2.05, simulated " in out, err
    assert picture.read_text(encoding="utf-8").startswith("<?xml")


def test_a_pair_without_nvlink_takes_what_else_there_is() -> None:
    found = exchange(load_topology("dgx-1v"), merge.SIMULATED["nvlink"], 1 << 20)
    assert found.pairs == {"ucx transports=cuda_ipc": 32, "ucx transports=tcp": 24}


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--machine", "dgx-1v", "-n", "2"], "a simulated machine has a rank on each GPU"),
        (["--machine", "hse-x"], "hse-x"),
        (["--memory", "gpu"], "--memory is not for merge, which joins tables in host memory"),
        (["--backend", "virtual_gpu"], "--backend is not for merge"),
        (["--sizes", "8"], "a table at a rank has 1K to 64G"),
        (["--json", "--csv"], "write one of them"),
        (["latency"], "time it alone"),
    ],
)
def test_what_it_does_not_take_is_refused(run: Run, words: list[str], why: str) -> None:
    code, out, err = run(*QUICK[:2], *words)
    assert (code, out) == (2, "") and why in err and err.count("\n") == 1
