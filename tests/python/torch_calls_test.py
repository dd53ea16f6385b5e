"""docs/torch_calls.md: every name of torch.distributed.distributed_c10d, and what the back end makes of it.

`python tests/python/torch_calls_test.py` writes the page, with PyTorch's version and the date. With a file as its
argument it runs the calls on GPUs and writes what it has seen there; scripts/gpu_test.sh makes RECORD so.
"""

from __future__ import annotations

import datetime
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from rank_jobs import HAS_TORCH, ROOT, TORCHRUN, runtime_folder
from torch_forms import form

__all__ = ["form", "runtime_folder"]

PAGE = ROOT / "docs" / "torch_calls.md"
RECORD = ROOT / "docs" / "recorded" / "torch_calls_gpu.json"
# What each of two ranks runs; x is [1, 1, 1] at rank 0 and [2, 2, 2] at rank 1. The last line is the check.
CALLS = {
    "all_gather": "c.all_gather(outs, x)\nouts[1].tolist() == [2] * 3",
    "all_gather_coalesced": "c.all_gather_coalesced([[outs[0]], [outs[1]]], [x])\nouts[1].tolist() == [2] * 3",
    "all_gather_into_tensor": "c.all_gather_into_tensor(six, x)\nsix.tolist() == [1, 1, 1, 2, 2, 2]",
    "all_gather_object": "c.all_gather_object(objects, rank)\nobjects == [0, 1]",
    "all_gather_single": "c.all_gather_single(six, x)\nsix.tolist() == [1, 1, 1, 2, 2, 2]",
    "all_reduce": "c.all_reduce(x)\nx.tolist() == [3] * 3",
    "all_reduce_coalesced": "c.all_reduce_coalesced([x])\nx.tolist() == [3] * 3",
    "all_to_all": "c.all_to_all(outs, [x, x])\nouts[1].tolist() == [2] * 3",
    "all_to_all_single": "c.all_to_all_single(six, torch.cat([x, x]))\nsix.tolist() == [1, 1, 1, 2, 2, 2]",
    "barrier": "c.barrier()\nTrue",
    "batch_isend_irecv": "[w.wait() for w in c.batch_isend_irecv([c.P2POp(c.isend, x, other), "
    "c.P2POp(c.irecv, outs[0], other)])]\nouts[0][0] == other + 1",
    "broadcast": "c.broadcast(x, 1)\nx.tolist() == [2] * 3",
    "broadcast_object_list": "c.broadcast_object_list(objects, 1)\nobjects[1] == 1",
    "gather": "c.gather(x, outs if rank == 0 else None)\nrank == 1 or outs[1].tolist() == [2] * 3",
    "gather_into_tensor": "c.gather_into_tensor(six if rank == 0 else None, x)\nrank == 1 or six.sum() == 9",
    "gather_object": "c.gather_object(rank, objects if rank == 0 else None)\nrank == 1 or objects == [0, 1]",
    "gather_single": "c.gather_single(six if rank == 0 else None, x)\nrank == 1 or six.sum() == 9",
    "irecv": "work = c.isend(x, other)\nc.irecv(outs[0], other).wait()\nwork.wait()\nouts[0][0] == other + 1",
    "isend": "work = c.isend(x, other)\nc.recv(outs[0], other)\nwork.wait()\nouts[0][0] == other + 1",
    "monitored_barrier": "c.monitored_barrier()\nTrue",
    "new_group": "g = c.new_group([0, 1], backend='waywiser')\nc.all_reduce(x, group=g)\nx.tolist() == [3] * 3",
    "new_subgroups": "g, _ = c.new_subgroups(2)\nc.all_reduce(x, group=g)\nx.tolist() == [3] * 3",
    "new_subgroups_by_enumeration": "g, _ = c.new_subgroups_by_enumeration([[0], [1]])\nc.get_world_size(g) == 1",
    "recv": "c.send(x, 1) if rank == 0 else c.recv(x, 0)\nx.tolist() == [1] * 3",
    "recv_object_list": "c.send_object_list([5], 1) if rank == 0 else c.recv_object_list(objects[:1], 0)\nTrue",
    "reduce": "c.reduce(x, 0)\nrank == 1 or x.tolist() == [3] * 3",
    "reduce_scatter": "c.reduce_scatter(outs[0], [x, x])\nouts[0].tolist() == [3] * 3",
    "reduce_scatter_single": "c.reduce_scatter_single(outs[0], torch.cat([x, x]))\nouts[0].tolist() == [3] * 3",
    "reduce_scatter_tensor": "c.reduce_scatter_tensor(outs[0], torch.cat([x, x]))\nouts[0].tolist() == [3] * 3",
    "scatter": "c.scatter(outs[0], [x, x] if rank == 0 else None)\nouts[0].tolist() == [1] * 3",
    "scatter_object_list": "c.scatter_object_list(objects, [0, 1] if rank == 0 else None)\nobjects[0] == rank",
    "send": "c.send(x, 1) if rank == 0 else c.recv(x, 0)\nx.tolist() == [1] * 3",
    "send_object_list": "c.send_object_list([5], 1) if rank == 0 else c.recv_object_list(objects[:1], 0)\nTrue",
    "set_timeout": "c.set_timeout(datetime.timedelta(seconds=50), c.group.WORLD)\nTrue",
    "shrink_group": "c.shrink_group([1])\nTrue",
    "split_group": "c.split_group(c.group.WORLD, [[0], [1]])\nTrue",
}
# Every rank begins and ends with it.
ALWAYS = {"init_process_group", "destroy_process_group"}
PROGRAM = """
import datetime, json, os, sys, torch, waywiser.torch_backend
from torch.distributed import distributed_c10d as c
device = None
if sys.argv[2] == "gpu":
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]) % torch.cuda.device_count())
    torch.cuda.set_device(device)
    torch.set_default_device(device)
c.init_process_group("waywiser", device_id=device)
rank, other = c.get_rank(), 1 - c.get_rank()
seen = {}
for name, code in json.loads(sys.argv[1]).items():
    x, six = torch.full((3,), rank + 1.0), torch.zeros(6)
    outs, objects = [torch.zeros(3), torch.zeros(3)], [rank, rank]
    *lines, check = code.splitlines()
    try:
        exec("\\n".join(lines))
        seen[name] = "works" if eval(check) else "WRONG"
    except (RuntimeError, ValueError, NotImplementedError, AttributeError, TypeError) as error:
        seen[name] = f"refused: {error}".splitlines()[0]
    c.barrier()
if rank == 0: print("SEEN", json.dumps([torch.__version__.partition("+")[0], c.__all__, seen]), flush=True)
c.destroy_process_group()
"""


def seen(place: str = "host") -> tuple[str, list[str], dict[str, str]]:
    """PyTorch's version, its names, and what each call has come to, with tensors in host memory or on a "gpu"."""
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "program.py"
        program.write_text(PROGRAM)
        command = [*TORCHRUN, "--nproc-per-node", "2", str(program), json.dumps(CALLS), place]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=280)
    found = re.search(r"^SEEN (.*)$", done.stdout, re.MULTILINE)
    assert done.returncode == 0 and found, done.stderr[-3000:]
    version, names, calls = json.loads(found[1])
    return version, names, calls


def record() -> dict[str, Any]:
    """What was seen on GPUs: version, date, device, names, calls."""
    return json.loads(RECORD.read_text()) if RECORD.exists() else {}


def kind_of(name: str, names: list[str], calls: dict[str, str]) -> str:
    if name not in names:
        return "not in this PyTorch"
    return calls.get(name, "works" if name in ALWAYS else "no call of a back end").replace("|", "/")


def rows(names: list[str], calls: dict[str, str]) -> list[str]:
    on_gpus = record()

    def gpu(name: str) -> str:
        return kind_of(name, on_gpus["names"], on_gpus["calls"]) if on_gpus else "not run"

    return [f"| `{name}` | {kind_of(name, names, calls)} | {gpu(name)} |" for name in sorted(names)]


USES = (
    "## Other uses\n"
    "\n"
    "Tried with two ranks and PyTorch 2.15.0 on host memory, beside Gloo, 2026-11-30; tests of "
    "`tests/python/torch_backend_test.py` hold all but the refusals.\n"
    "\n"
    "| Use | What the back end makes of it |\n"
    "|---|---|\n"
    "| Several calls in `_coalescing_manager`, also with `device` and `async_ops` | works: all_reduce, "
    "all_gather_into_tensor, reduce_scatter_tensor, isend and irecv |\n"
    "| Tensors of another order: transposed, `channels_last`, with gaps | works: copied to C order and back, "
    "also where the order differs between ranks |\n"
    "| `BAND`, `BOR`, `BXOR` of integers and bools | works; arrays on GPUs go through host memory |\n"
    "| `PREMUL_SUM` of floating-point numbers | works: a copy is multiplied by the factor. Integers: "
    "`ValueError` that names what there is |\n"
    "| Two threads that call one group | works: they take turns. Ranks must call in the same order, as ever "
    "|\n"
    "| `split_group` | refused by PyTorch, which asks back ends in C++ alone how to split: "
    "`new_group(ranks)` makes the same groups |\n"
    "| `gather_into_tensor`, `gather_single` | refused by PyTorch: `gather` does the same |\n"
    "| `recv` from any rank | refused: `waywiser needs a source rank: recv(..., src=RANK)` |\n"
)


def page(version: str, names: list[str], calls: dict[str, str]) -> str:
    on_gpus = record()
    gpus = "Calls on GPUs were not run for this table."
    if on_gpus:
        gpus = f"GPU: PyTorch {on_gpus['version']}, two ranks on {on_gpus['device']}, {on_gpus['date']}."
    return (
        f"""# The calls of torch.distributed

What `init_process_group("waywiser")` makes of every public name of `torch.distributed.distributed_c10d`.
Host: PyTorch {version}, two ranks, tensors in host memory, {datetime.date.today()}.
{gpus}
The back end in C++ and the one in Python make the same of them.

| Name | Host | GPU |
|---|---|---|
"""
        + "".join(f"{row}\n" for row in rows(names, calls))
        + USES
    )


def write_record(file: Path) -> None:
    version, names, calls = seen("gpu")
    words = [sys.executable, "-c", "import torch; print(torch.cuda.device_count(), 'x', torch.cuda.get_device_name())"]
    device = subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()
    told = {"version": version, "date": str(datetime.date.today()), "device": device, "names": names, "calls": calls}
    file.write_text(json.dumps(told, indent=1) + "\n")


@pytest.mark.skipif(not HAS_TORCH, reason="PyTorch is not installed")
def test_the_page_has_what_was_seen(form: str) -> None:
    version, names, calls = seen()
    assert "WRONG" not in calls.values(), calls
    if f"Host: PyTorch {version}," not in PAGE.read_text():
        pytest.skip(f"the page is of another PyTorch than {version}: this file writes it")
    shown = [line for line in PAGE.read_text().splitlines() if line.startswith("| `")]
    assert shown == rows(names, calls)


def test_no_call_on_gpus_was_wrong() -> None:
    assert "WRONG" not in record().get("calls", {}).values()


def test_every_call_that_was_run_is_in_the_page() -> None:
    named = re.findall(r"^\| `(\w+)` \| (.*?) \| .* \|$", PAGE.read_text(), re.MULTILINE)
    assert {name for name, kind in named if kind != "no call of a back end"} == {*CALLS, *ALWAYS}


if __name__ == "__main__":
    os.environ["PYTHONPATH"] = f"{ROOT / 'python'}:{os.environ.get('PYTHONPATH', '')}"
    write_record(Path(sys.argv[1])) if len(sys.argv) > 1 else PAGE.write_text(page(*seen()))
    sys.exit(0)
