"""Ranks find each other.

waywiser run -n 4 python examples/01_hello.py        (or mpirun -n 4, srun -n 4, torchrun --nproc-per-node 4)
"""

import numpy as np

import waywiser as ww

group = ww.join()

# Each rank sends its number to the next one, around the ring.
number = np.array([group.rank], dtype=np.int32)
from_left = np.empty_like(number)
right, left = (group.rank + 1) % group.size, (group.rank - 1) % group.size
group.sendrecv(number, right, from_left, left)

print(f"rank {group.rank} of {group.size}: hello from rank {from_left[0]}", flush=True)
