"""Programs of two ranks on GPUs with PyTorch, for tests: on two GPUs, or on one that runs the two ranks by turns."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
from dataclasses import dataclass

from free_ports import free_ports
from rank_jobs import HAS_TORCH


def gpus() -> int:
    if not HAS_TORCH:
        return 0
    import torch

    return int(torch.cuda.device_count())


LIMIT = 120

BEGIN = """
import faulthandler, os, signal, sys, time, torch, torch.distributed as dist, waywiser as ww
from datetime import timedelta

faulthandler.dump_traceback_later(100, exit=True)  # says where it hangs
R = int(os.environ["RANK"])
D = R % torch.cuda.device_count()
torch.cuda.set_device(D)
dev = torch.device("cuda", D)
x = torch.ones(5000, device=dev)
y = torch.full_like(x, -77)


def stay():
    print("here", flush=True)
    sys.stdin.read()
    os._exit(0)


def failed(*calls):
    for call in calls:
        try:
            call()
        except Exception as error:
            print("raised", type(error).__name__, str(error).splitlines()[0])
        else:
            print("NOTHING WAS RAISED")
"""
GROUP = """
group = ww.join(timeout=TIMEOUT)
group.all_reduce(x, y)
torch.cuda.synchronize()
assert y[0].item() == 2, y
"""
BACKEND = """
import waywiser.torch_backend
dist.init_process_group("waywiser", timeout=timedelta(seconds=TIMEOUT))
dist.all_reduce(x)
torch.cuda.synchronize()
assert x[0].item() == 2, x
"""


@dataclass
class Ended:
    code: int
    out: str
    err: str


def run_pair(program: str, timeout: float, **variables: str) -> list[Ended]:
    """Two ranks; rank 1 stays until rank 0 has ended."""
    port = free_ports(2)  # the store listens at the first, rank 0 at the second
    name = secrets.token_hex(4)
    ranks = []
    for rank in range(2):
        own = {"RANK": str(rank), "WORLD_SIZE": "2", "LOCAL_RANK": str(rank), "MASTER_ADDR": "127.0.0.1"}
        own["WAYWISER_SHARED_GPU"] = "kernels"
        env = {**os.environ, **own, "MASTER_PORT": str(port), "TORCHELASTIC_RUN_ID": name, **variables}
        ranks.append(
            subprocess.Popen(
                [sys.executable, "-c", program.replace("TIMEOUT", str(timeout))],
                env=env,
                text=True,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
        )
    ended = []
    try:
        for process in ranks:
            out, err = process.communicate(timeout=LIMIT)
            ended.append(Ended(process.returncode, out, err))
    finally:
        for process in ranks:
            process.kill()
    return ended
