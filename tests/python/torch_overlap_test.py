"""torch.distributed with backend="waywiser" and tensors that share memory: right, or an error before anything moves."""

from __future__ import annotations

import re
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
import torch, torch.distributed as dist, waywiser.torch_backend

dist.init_process_group("waywiser")
rank, other = dist.get_rank(), 1 - dist.get_rank()
def had(of): return torch.arange(12.0) + 100 * of
x = had(rank)


def right(call, changed):
    # `changed`: (first element, what is there) of all that differs afterwards.
    x.copy_(had(rank))
    call()
    wanted = had(rank)
    for first, values in changed: wanted[first : first + len(values)] = values
    assert torch.equal(x, wanted), (x, wanted)


def refused(call):
    x.copy_(had(rank))
    try: call()
    except ValueError as error: assert "overlap" in str(error), error
    else: raise AssertionError("no error")
    assert torch.equal(x, had(rank)), x


mine, root = 3 * rank, 0
blocks = [had(0)[mine : mine + 3], had(1)[mine : mine + 3]]
total = blocks[0] + blocks[1]
# Lists: outputs may share memory with inputs, but not with each other.
right(lambda: dist.all_gather([x[:3], x[3:6]], x[1:4]), [(0, had(0)[1:4]), (3, had(1)[1:4])])
refused(lambda: dist.all_gather([x[:3], x[2:5]], torch.zeros(3)))
refused(lambda: dist.all_gather([x[:3], x[:3]], torch.zeros(3)))
refused(lambda: dist.all_gather([x.view(3, 4)[:, 0], x[3:6]], torch.zeros(3)))
right(lambda: dist.all_gather([x.view(6, 2)[:3, 0], x.view(6, 2)[:3, 1]], torch.full((3,), float(rank))),
      [(0, torch.tensor([0.0, 1, 0, 1, 0, 1]))])
if rank == root: refused(lambda: dist.gather(torch.zeros(3), [x[:3], x[2:5]], root))
right(lambda: dist.gather(x[1:4], [x[:3], x[3:6]] if rank == root else None, root),
      [(0, had(0)[1:4]), (3, had(1)[1:4])] if rank == root else [])
right(lambda: dist.scatter(x[1:4], [x[:3], x[3:6]] if rank == root else None, root), [(1, had(0)[mine : mine + 3])])
right(lambda: dist.all_to_all([x[1:4], x[4:7]], [x[:3], x[3:6]]), [(1, blocks[0]), (4, blocks[1])])
refused(lambda: dist.all_to_all([x[:3], x[2:5]], [torch.zeros(3)] * 2))
right(lambda: dist.reduce_scatter(x[1:4], [x[:3], x[3:6]]), [(1, total)])
# Blocks of two sizes are reduced one after the other.
sizes = [slice(0, 3), slice(3, 8)]
right(lambda: dist.reduce_scatter(x[2:5] if rank == 0 else x[2:7], [x[each] for each in sizes]),
      [(2, (had(0) + had(1))[sizes[rank]])])
# One tensor for all.
right(lambda: dist.all_gather_into_tensor(x[:6], x[mine : mine + 3]),
      [(0, had(0)[:3]), (3, had(1)[3:6])])
refused(lambda: dist.all_gather_into_tensor(x[:6], x[mine + 1 : mine + 4]))
right(lambda: dist.reduce_scatter_tensor(x[mine : mine + 3], x[:6]), [(mine, total)])
refused(lambda: dist.reduce_scatter_tensor(x[mine + 1 : mine + 4], x[:6]))
refused(lambda: dist.all_to_all_single(x[1:7], x[:6]))
refused(lambda: dist.all_to_all_single(x[1:7], x[:6], [3, 3], [3, 3]))
right(lambda: dist.all_to_all_single(x[:6], x[:6], [3, 3], [3, 3]), [(0, blocks[0]), (3, blocks[1])])
# Several at once.
refused(lambda: dist.all_reduce_coalesced([x[:3], x[2:5]]))
right(lambda: dist.all_reduce_coalesced([x[:3], x[3:6]]), [(0, (had(0) + had(1))[:6])])
def together(call, *pairs):
    with dist._coalescing_manager():
        for output, data in pairs: call(output, data)
ours = torch.full((3,), float(rank))
refused(lambda: together(dist.all_gather_into_tensor, (x[:6], ours), (x[5:11], ours)))
refused(lambda: together(dist.all_gather_into_tensor, (x[:6], ours), (x[6:], x[mine : mine + 3])))
right(lambda: together(dist.all_gather_into_tensor, (x[:6], ours), (x[6:], x[6 + mine : 9 + mine])),
      [(3, torch.ones(3)), (0, torch.zeros(3)), (6, had(0)[6:9]), (9, had(1)[9:])])
refused(lambda: together(dist.reduce_scatter_tensor, (ours, x[:6]), (x[:3], x[6:])))
dist.destroy_process_group()
print(f"rank {rank} is through", flush=True)
"""


def test_tensors_that_share_memory(tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    command = [*TORCHRUN, "--nproc-per-node", "2", path]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=280)
    assert done.returncode == 0, "\n".join(line for line in done.stderr.splitlines() if line.startswith("[rank"))
    assert sorted(re.findall(r"rank \d is through", done.stdout)) == ["rank 0 is through", "rank 1 is through"]
