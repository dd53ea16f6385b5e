"""Training that survives a rank: rank 0 saves the weights now and then, and the next start goes on from there.

waywiser run -n 3 python examples/07_faults.py weights.npz 50      (rank 2 is killed at step 50)
waywiser run -n 3 python examples/07_faults.py weights.npz         (goes on)
"""

import os
import signal
import sys
from pathlib import Path

import numpy as np

import waywiser as ww

STEPS = 200
file, killed_at = Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else STEPS

group = ww.join(timeout=30)  # no wait takes longer
last = group.size - 1
random = np.random.default_rng(group.rank)
x = random.uniform(-1, 1, 1000)
y = 3 * x - 1

# What rank 0 has saved, for all ranks.
state = np.zeros(3)  # two weights, and the number of steps that have made them
if group.rank == 0 and file.exists():
    state = np.load(file)["state"]
group.broadcast(state, root=0)
weights, first = state[:2], int(state[2])

try:
    for step in range(first, STEPS):
        if step == killed_at and group.rank == last:
            os.kill(os.getpid(), signal.SIGKILL)
        error = weights[0] * x + weights[1] - y
        gradient = np.array([(error * x).mean(), error.mean()])
        weights -= 0.5 * group.all_reduce(gradient, op="avg")
        if group.rank == 0 and (step + 1) % 20 == 0:
            state[2] = step + 1
            np.savez(file, state=state)
except ww.TransferError as problem:
    print(f"rank {group.rank} stops: {problem}", file=sys.stderr, flush=True)
    sys.exit(1)

if group.rank == 0:
    print(f"steps {first} to {STEPS}: y = {weights[0]:.3f} x {weights[1]:+.3f}", flush=True)
