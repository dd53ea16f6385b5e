"""Seconds from the call of `init_process_group` to the end of the first all_reduce, beside NCCL, and of `ww.join`.

torchrun --standalone --nproc-per-node 2 torch_startup.py [ROUNDS]     (default 3; without a GPU: beside Gloo)

PyTorch has been imported and the GPU has its context before; all ranks begin at once. Each figure is of new processes,
in turns; the slowest rank's. Rank 0 prints one line of JSON. The first all_reduce is verified.
"""

from __future__ import annotations

import datetime
import json
import os
import statistics
import subprocess
import sys
import time

RANK, SIZE = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
PATIENCE = datetime.timedelta(seconds=60)


def one(what: str, port: int) -> dict[str, float]:
    """Runs in a process of its own; {} on other ranks than 0."""
    import torch
    import torch.distributed as dist

    import waywiser as ww
    import waywiser.torch_backend

    device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if torch.cuda.is_available() else torch.device("cpu")
    if device.type == "cuda":
        torch.cuda.set_device(device)
    first = torch.ones(3, device=device)
    store = dist.TCPStore(os.environ["MASTER_ADDR"], port, SIZE, RANK == 0, PATIENCE)
    store.set(f"here {RANK}", "")
    store.wait([f"here {rank}" for rank in range(SIZE)], PATIENCE)
    start = time.perf_counter()
    found: dict[str, float] = {}
    if what == "join":
        group = ww.from_torch(dist.PrefixStore("join", store), RANK, SIZE)
        found["join"] = time.perf_counter() - start
        group.all_reduce(first, first)
    else:
        dist.init_process_group(
            what, store=dist.PrefixStore("init", store), rank=RANK, world_size=SIZE, timeout=PATIENCE
        )
        found["init_process_group"] = time.perf_counter() - start
        dist.all_reduce(first)
    assert first.tolist() == [SIZE] * 3
    found["and the first all_reduce"] = time.perf_counter() - start
    store.set(f"figures {RANK}", json.dumps(found))
    everyone = [json.loads(store.get(f"figures {rank}")) for rank in range(SIZE)]
    store.set(f"done {RANK}", "")
    store.wait([f"done {rank}" for rank in range(SIZE)], PATIENCE)
    return {name: max(each[name] for each in everyone) for name in found} if RANK == 0 else {}


def main() -> int:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    import torch

    ways = ("waywiser", "nccl" if torch.cuda.is_available() else "gloo", "join")
    found: dict[str, dict[str, list[float]]] = {way: {} for way in ways}
    for number in range(rounds):
        for index, way in enumerate(ways):
            port = int(os.environ["MASTER_PORT"]) + 10 + number * len(ways) + index
            done = subprocess.run(
                [sys.executable, __file__, "one", way, str(port)], capture_output=True, text=True, timeout=120
            )
            if done.returncode:
                print(done.stderr, file=sys.stderr)
                return 1
            for name, seconds in json.loads(done.stdout.strip().splitlines()[-1]).items():
                found[way].setdefault(name, []).append(round(seconds, 4))
    if RANK == 0:
        medians = {way: {name: statistics.median(all_) for name, all_ in each.items()} for way, each in found.items()}
        print(json.dumps({"ranks": SIZE, "rounds": rounds, "median seconds": medians, "seconds": found}))
    return 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["one"]:
        print(json.dumps(one(sys.argv[2], int(sys.argv[3]))))
    else:
        sys.exit(main())
