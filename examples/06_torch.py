"""Data-parallel training with PyTorch over Waywiser, in place of NCCL or Gloo: two lines are new.

torchrun --standalone --nproc-per-node 2 examples/06_torch.py
"""

import sys

try:
    import torch
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel
except ImportError:
    print("this example needs PyTorch: pip install torch")
    sys.exit()

import waywiser.torch_backend  # noqa: F401  the first line: registers the back end

dist.init_process_group("waywiser")  # the second
rank, size = dist.get_rank(), dist.get_world_size()
device = torch.device("cuda", rank % torch.cuda.device_count()) if torch.cuda.is_available() else torch.device("cpu")

# Each rank has its own samples of y = 3 a - 2 b + 1.
random = torch.Generator().manual_seed(rank)
samples = torch.rand(1000, 2, generator=random)
wanted = (samples @ torch.tensor([3.0, -2.0]) + 1).to(device)
samples = samples.to(device)

torch.manual_seed(rank)  # the ranks begin with different weights: rank 0's are broadcast
model = DistributedDataParallel(torch.nn.Linear(2, 1).to(device))
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
for _step in range(300):
    optimizer.zero_grad()
    loss = (model(samples).squeeze(1) - wanted).square().mean()
    loss.backward()  # averages the gradients of all ranks
    optimizer.step()

weights = torch.cat([parameter.detach().flatten() for parameter in model.parameters()])
everyone = [torch.empty_like(weights) for _ in range(size)]
dist.all_gather(everyone, weights)
if rank == 0:
    a, b, constant = weights.tolist()
    equal = all(torch.equal(weights, other) for other in everyone)
    print(f"y = {a:.3f} a {b:+.3f} b {constant:+.3f}; equal on all {size} ranks: {equal}", flush=True)
dist.destroy_process_group()
