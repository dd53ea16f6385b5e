"""Tables that other programs print are read by the names in their head; what does not fit is refused."""

from __future__ import annotations

import pytest

from waywiser.bench import ucx_perftest
from waywiser.bench.team import TeamError
from waywiser.errors import InputError
from waywiser.prove import benchmarks

PLAIN_OSU = (
    "# OSU MPI Latency Test v7.4\n# Datatype: MPI_CHAR.\n# Size       Avg Latency(us)\n24                      0.53\n"
)
FULL_OSU = """# OSU MPI Allreduce Latency Test v7.4
# Size       Avg Latency(us)   Min Latency(us)   Max Latency(us)  Iterations
24                      2.50              1.10              3.90        1000
"""


def test_columns_of_osu_are_found_by_their_names() -> None:
    assert benchmarks.read_osu("ping-pong", PLAIN_OSU, 2, (24,)) == {("ping-pong", 24): pytest.approx(0.53e-6)}
    swapped = FULL_OSU.replace("Avg", "x").replace("Min", "Avg").replace("x", "Min")
    for text, wanted in ((FULL_OSU, 2.5e-6), (swapped, 1.1e-6)):
        assert benchmarks.read_osu("all-reduce", text, 2, (24,)) == {("all-reduce", 24): pytest.approx(wanted)}
    rate = "# Size      Bandwidth (MB/s)\n1536   3072.00\n"
    assert benchmarks.read_osu("one way", rate, 2, (1536,)) == {("one way", 1536): pytest.approx(0.5e-6)}
    for test, text in (("one way", PLAIN_OSU), ("ping-pong", PLAIN_OSU + "48  0.60  7\n"), ("ping-pong", "24 0.00\n")):
        with pytest.raises(InputError, match=r"no column of Bandwidth|not understood"):
            benchmarks.read_osu(test, text, 2, (24,))


# Of UCX 1.22; the versions before 1.12 had `typical_lat`.
BATCH = """bt,iterations,50.0_percentile_lat,avg_lat,overall_lat,avg_bw,overall_bw,avg_mr,overall_mr
case0,1000,0.336,130.586,656.364,0.06,0.01,7658,1524
"""


def test_columns_of_perftest_are_found_by_their_names() -> None:
    expected = [("case0", ucx_perftest.Row(pytest.approx(0.336e-6), pytest.approx(656.364e-6)))]
    assert ucx_perftest.read_batch(BATCH) == expected
    assert ucx_perftest.read_batch(BATCH.replace("50.0_percentile_lat", "typical_lat")) == expected
    assert (
        ucx_perftest.read_batch(BATCH.replace("iterations,", "iterations,x,").replace("1000,", "1000,9,")) == expected
    )
    for wrong in (BATCH.replace("overall_lat", "y"), BATCH.replace(",1524", ""), BATCH.replace("0.336", "nan")):
        with pytest.raises(TeamError, match="ucx_perftest: not understood: 'case0,1000"):
            ucx_perftest.read_batch(wrong)
    assert ucx_perftest.read_batch("ucx_perftest: no such option\n") == []


UCX_LOG = (
    "[1795833620.161674] [vm:18614:0]     ucp_context.c:1492 UCX  WARN  transport 'a', 'b' is not available, c, d\n"
)
NCCL_LOG = "vm:18614:18614 [0] NCCL INFO NET/Plugin: a, b, 12 34\n"


@pytest.mark.parametrize("log", [UCX_LOG, NCCL_LOG])
def test_what_libraries_log_between_the_figures_is_none(log: str) -> None:
    head, row = BATCH.splitlines(keepends=True)
    assert ucx_perftest.read_batch(f"{log}{head}{UCX_LOG}{row}{UCX_LOG}") == ucx_perftest.read_batch(BATCH)
    assert ucx_perftest.read_batch(f"{head}{UCX_LOG}") == []
    osu = "".join(log + line for line in PLAIN_OSU.splitlines(keepends=True)) + log
    assert benchmarks.read_osu("ping-pong", osu, 2, (24,)) == benchmarks.read_osu("ping-pong", PLAIN_OSU, 2, (24,))
