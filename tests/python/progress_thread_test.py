"""Started operations progress while the program computes, and `waywiser status` shows it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from rank_jobs import finish, runtime_folder, start, wait_for_status

__all__ = ["runtime_folder"]
pytestmark = pytest.mark.slow

# Rank 0 calls nothing of the group between the begin of its part and the file that rank 1 writes when it has the sum.
BESIDE = """
import pathlib, sys, time
import numpy as np
import waywiser as ww

group = ww.join(progress_thread=True)
done = pathlib.Path(sys.argv[1])
mine = np.full(1 << 20, group.rank + 1.0)
if group.rank == 1:
    total = group.all_reduce(mine)
    done.touch()
else:
    future = group.start_all_reduce(mine)
    last = time.monotonic() + 60
    while not done.exists():
        assert time.monotonic() < last, "rank 1 has not got the sum"
    total = future.wait()
assert (total == 3).all()
"""

WAITS = """
import signal, sys
import numpy as np
import waywiser as ww

group = ww.join(progress_thread=sys.argv[1] == "on")
if group.rank == 1:
    group.recv(np.empty(3), 0)
signal.pause()
"""


def test_what_has_begun_goes_on_while_the_program_computes(tmp_path: Path) -> None:
    code, _, errors = finish(start("run", "-n", "2", sys.executable, "-c", BESIDE, tmp_path / "done"))
    assert (code, errors) == (0, "")


def test_status_shows_where_the_thread_runs() -> None:
    for wanted, shown in (("on", "not bound to a core"), ("off", None)):
        job = start("run", "-n", "2", sys.executable, "-c", WAITS, wanted)
        ranks = wait_for_status(job.pid, "recv #1")
        job.terminate()
        finish(job)
        assert [rank["progress_thread"] for rank in ranks] == [shown, shown]
