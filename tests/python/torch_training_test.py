"""What `benchmarks/torch_training.py` times: steps "without communication" sum no gradients."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))


def test_steps_without_communication_sum_no_gradients(tmp_path: Path) -> None:
    import torch.distributed as dist
    from torch import nn
    from torch_training import Case, Trainer

    sums = []

    def spread(model: nn.Module, group: Any, _device: Any, _bucket: int) -> nn.Module:
        parallel = nn.parallel.DistributedDataParallel(model, process_group=group)

        def hook(_state: object, bucket: Any) -> Any:
            sums.append(bucket.index())
            done = torch.futures.Future()
            done.set_result(bucket.buffer())
            return done

        parallel.register_comm_hook(None, hook)
        return parallel

    dist.init_process_group("gloo", init_method=f"file://{tmp_path}/meet", rank=0, world_size=1)
    try:
        trainer = Trainer(Case("one", lambda: nn.Linear(4, 4), (2, 4), spread), dist.group.WORLD, torch.device("cpu"))
        for communicates, expected in ((True, 1), (False, 1), (True, 2)):
            trainer.step(torch.ones(2, 4), communicates)
            assert len(sums) == expected
    finally:
        dist.destroy_process_group()
