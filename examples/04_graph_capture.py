"""All-reduces inside a CUDA graph: captured once, replayed without the host.

waywiser run -n 4 python examples/04_graph_capture.py
"""

import sys

import waywiser as ww

group = ww.join()
try:
    import torch

    why_not = "" if torch.cuda.is_available() else "PyTorch finds no GPU"
except ImportError:
    why_not = "PyTorch is not installed"
if why_not:
    if group.rank == 0:
        print(f"a CUDA graph needs an NVIDIA GPU and PyTorch: {why_not}", flush=True)
    sys.exit()

torch.cuda.set_device(group.rank % torch.cuda.device_count())
values = torch.full((1000,), float(group.rank + 1), device="cuda")
total = torch.empty_like(values)

# One call outside of the graph: the first call of a group sets up state for the others.
group.all_reduce(values, total)
torch.cuda.synchronize()

graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    for _ in range(10):
        group.all_reduce(values, total)
        values.copy_(total / group.size)  # then all ranks have the average

for _ in range(5):
    graph.replay()
torch.cuda.synchronize()
if group.rank == 0:
    print(f"after 50 all-reduces in 5 replays: {total[0].item():.3f}", flush=True)
