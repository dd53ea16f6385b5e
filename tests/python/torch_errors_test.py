"""Errors of torch.distributed with backend="waywiser": the group's classes and words, in both forms of the back end."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from rank_jobs import HAS_TORCH, TORCHRUN, runtime_folder
from torch_forms import form

__all__ = ["form", "runtime_folder"]
pytestmark = [
    pytest.mark.skipif(not HAS_TORCH, reason="PyTorch is not installed"),
    pytest.mark.usefixtures("form"),
]

PROGRAM = """
import os, torch, torch.distributed as dist, waywiser, waywiser.torch_backend
dist.init_process_group("waywiser")
rank, group = dist.get_rank(), dist.new_group(backend="waywiser")
assert bool(waywiser.torch_backend.why_python()) == (os.environ["WAYWISER_TORCH_FORM"] == "python")
two, five = torch.ones(2), torch.ones(5)


def raises(kind, words, call):
    for asynchronous in (False, True):
        try:
            work = call(async_op=asynchronous)
            if asynchronous: work.wait()
        except waywiser.Error as error:
            assert type(error) is kind and words in str(error), (words, type(error), error)
        else:
            raise AssertionError(f"no error: {words}")


raises(waywiser.InputError, "all_gather: the output has 5 elements, 4 are needed",
       lambda **how: dist.all_gather_into_tensor(five, two, **how))
raises(waywiser.InputError, "reduce_scatter: the input has 5 elements, 4 are needed",
       lambda **how: dist.reduce_scatter_tensor(two, five, **how))
raises(waywiser.InputError, "all_to_all: 5 elements cannot be shared out to 2 ranks",
       lambda **how: dist.all_to_all_single(five, torch.ones(5), **how))
raises(waywiser.InputError, "all_reduce: there is no bxor of float32, which is no integer",
       lambda **how: dist.all_reduce(two, dist.ReduceOp.BXOR, **how))
raises(waywiser.InputError, "overlap", lambda **how: dist.all_to_all_single(five[1:], five[:4], **how))
raises(waywiser.InputError, "tag 40000 is not in 0 to 32767", lambda async_op: dist.send(two, 1 - rank, tag=40000))
dist.all_reduce(two)  # they have changed nothing
assert two.tolist() == [2, 2]
try:
    dist.all_reduce(torch.ones(2 + rank), group=group)
except waywiser.InputError as error:
    assert "all_reduce #1" in str(error) and "bytes where" in str(error), error
else:
    raise AssertionError("no error")
raises(waywiser.InputError, "bytes where", lambda **how: dist.all_reduce(torch.ones(2), group=group, **how))
print(f"rank {rank} is through", flush=True)
os._exit(0)  # a group that has failed cannot be closed
"""


def test_errors_have_the_words_and_the_kinds_of_the_group(tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    command = [*TORCHRUN, "--nproc-per-node", "2", path]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=280)
    assert done.returncode == 0, "\n".join(line for line in done.stderr.splitlines() if line.startswith("[rank"))
    assert "rank 0 is through" in done.stdout and "rank 1 is through" in done.stdout
