"""The right column of the tables in docs/porting.md: every line runs, in ranks of one job."""

from __future__ import annotations

from pathlib import Path

import pytest
from rank_jobs import run, runtime_folder

__all__ = ["runtime_folder"]
pytestmark = pytest.mark.slow

PAGE = (Path(__file__).parents[2] / "docs/porting.md").read_text()
HOST = """
import waywiser
peer = 1 - group.rank
status = waywiser.MessageStatus()
def fresh():
    global x, y, row, row2
    x, y = (np.full((2, 2), group.rank + offset, np.float64) for offset in (1.0, 5.0))
    row, row2 = np.full(2, 7.0), np.zeros(2)
"""
# As HOST, in the memory of virtual GPUs; without a stream of the program's own they have none to hand over.
GPUS = """
import waywiser
group.close()
gpus = ww.virtual_gpus(2)
group = ww.join(gpus=gpus)
peer, stream = 1 - group.rank, gpus.open_stream(group.rank)
def on_gpu(values):
    array = gpus.empty(values.shape, "float32", group.rank)
    array.fill(float(values.flat[0]))
    return array
def fresh():
    global x, y, row, row2
    if "x" in globals(): group.synchronize(x, stream=stream)  # nothing uses the old arrays any more
    x, y = (on_gpu(np.full((2, 2), group.rank + offset, np.float32)) for offset in (1.0, 5.0))
    row, row2 = on_gpu(np.full(2, 7.0)), on_gpu(np.zeros(2))
fresh()
group.all_reduce(x, out=y)
"""


def lines(chapter: str) -> list[str]:
    """The Python of a chapter's table."""
    text = PAGE.partition(f"## {chapter}\n")[2].partition("\n## ")[0]
    rows = [row for row in text.splitlines() if row.startswith("| ") and "---" not in row][1:]
    cells = [row.split("|")[2].strip() for row in rows]
    found = [cell[1:-1] for cell in cells if cell.startswith("`") and cell.endswith("`")]
    assert len(found) == len(cells) > 8, cells
    return found


def job(chapter: str, setup: str, program: str | None = None) -> None:
    """Each line in turn, with new arrays; both ranks tell how far they came."""
    code = setup + "".join(
        f"fresh()\nprint({number}, flush=True)\n{line}\n" for number, line in enumerate(lines(chapter))
    )
    told = {} if program is None else {"program": program}
    status, out, err = run(2, code, **told)
    assert (status, err) == (0, ""), err
    assert sorted(map(int, out)) == sorted([*range(len(lines(chapter)))] * 2)


def test_from_mpi4py() -> None:
    job("mpi4py", HOST)


def test_from_torch_distributed() -> None:
    job("torch.distributed", HOST)


def test_from_nccl() -> None:
    job("NCCL", GPUS, program="import numpy as np, waywiser as ww\ngroup = ww.join()\n")


@pytest.mark.parametrize("name", ["ANY_SOURCE", "allow_pickle=False", "PROC_NULL"])
def test_what_differs_is_said(name: str) -> None:
    assert name in PAGE
