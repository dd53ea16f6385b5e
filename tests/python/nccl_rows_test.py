"""The rows that `waywiser tune --nccl` writes into a plan, of made-up times."""

from __future__ import annotations

from pathlib import Path

import pytest
from made_up_nccl import NO_END, plan
from made_up_nccl_ranks import NAME, OWN, made_up_series

from waywiser.errors import InputError
from waywiser.look.nccl_log import ways_taken
from waywiser.tune.nccl_rows import keep, under_a_tuner
from waywiser.tune.nccl_tuning import SIZES


@pytest.mark.parametrize(("ring", "between"), [(0.8, "Ring(protocol=Simple)"), (0.98, "default")])
def test_the_plan_takes_what_beats_the_default(tmp_path: Path, ring: float, between: str) -> None:
    """Between two sizes: what was faster at both, for nobody knows where NCCL changes its protocol."""
    series = made_up_series(ring)
    assert all(len(one["points"]) == len(SIZES) for one in series if one["way"] in ("default", "no plug-in"))
    rows = [row for row in keep(tmp_path / "plan.json", series, NAME, 2).rows if row.partner == NAME]
    assert {(row.operation, row.way) for row in rows if row.operation != "all_reduce"} == {
        (operation, "default") for operation in ("all_gather", "broadcast", "reduce", "reduce_scatter")
    }
    of_sums = [row for row in rows if row.operation == "all_reduce"]
    ways = [(row.from_bytes, row.to_bytes, row.way) for row in of_sums]
    assert ways == [
        (0, 1 << 14, "Tree(protocol=LL)"),
        ((1 << 14) + 1, (1 << 17) - 1, between),
        (1 << 17, 1 << 24, "Ring(channels=8,protocol=Simple)"),
        ((1 << 24) + 1, NO_END, "default"),
    ]


def test_a_row_that_says_nothing_costs_what_it_costs_with_the_tuner_loaded(tmp_path: Path) -> None:
    """A ring that loses to NCCL alone wins where NCCL under a tuner loses more; what is still lost is said."""
    series = made_up_series(silent=1.2)
    rows = [row for row in keep(tmp_path / "plan.json", series, NAME, 2).rows if row.operation == "broadcast"]
    assert {row.way.partition("(")[0] for row in rows} == {"Ring"}
    assert all(seconds > 1.01 * (1e-5 + size / 1e11) for row in rows for size, seconds in row.expected)
    assert under_a_tuner(series)["broadcast"] == pytest.approx(1.2, rel=0.01)
    lost = made_up_series(silent=1.05, others=1.1)
    (row,) = (row for row in keep(tmp_path / "p.json", lost, NAME, 2).rows if row.operation == "broadcast")
    assert (row.way, row.to_bytes) == ("default", NO_END) and "; 1.05 times as long as without a plug-in" in row.why


def test_what_nccl_takes_without_a_tuner_is_written_where_a_tuner_alone_loses(tmp_path: Path) -> None:
    """By its own log; also above the largest size."""
    log = "h:1:2 [0] NCCL INFO Broadcast: 64 Bytes -> Algo RING proto LL128 channel{Lo..Hi}={0..2}\n"
    (tmp_path / "nccl-1.log").write_text(f"h:1:2 [0] NCCL INFO Broadcast: 8 Bytes -> Algo RING proto LL {{\n{log}")
    series = made_up_series(silent=1.2, logs=tmp_path)
    rows = [row for row in keep(tmp_path / "plan.json", series, NAME, 2).rows if row.operation == "broadcast"]
    assert [(row.way, row.from_bytes, row.to_bytes) for row in rows] == [(OWN, 0, NO_END)]
    assert "times as long" in rows[0].why and "without a plug-in" not in rows[0].why, "as measured"


def test_nccl_says_how_it_ran_a_collective() -> None:
    line = "NCCL INFO {}: 4096 Bytes -> Algo {} proto {} channel{{Lo..Hi}}={{{}..{}}}\n"
    text = line.format("AllReduce", "TREE", "LL", 0, 1) + line.format("AllGather", "NVLS_TREE", "SIMPLE", 4, 19)
    assert ways_taken(text + line.format("AllReduce", "COLLNET_CHAIN", "SIMPLE", 0, 0)) == {
        "all_reduce": "CollNetChain(channels=1,protocol=Simple)",
        "all_gather": "NVLSTree(channels=16,protocol=Simple)",
    }
    assert ways_taken(line.format("AllReduce", "NEW", "LL", 0, 1) + line.format("Send", "RING", "LL", 0, 1)) == {}


def test_other_rows_of_the_plan_stay(tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    file.write_text(plan([("all_reduce", 0, NO_END, "default")], ranks=4))
    series = made_up_series()
    kept = keep(file, series, NAME, 2)
    assert [row.way for row in kept.rows if row.ranks == 4] == ["default"] and len(kept.rows) > 5
    again = keep(file, series, NAME, 2)
    assert again.rows == kept.rows
    file.write_text(plan([], fingerprint="f00"))
    with pytest.raises(InputError, match="is not measured on this machine"):
        keep(file, series, NAME, 2)
