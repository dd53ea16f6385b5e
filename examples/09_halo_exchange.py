"""Heat spreads over a ring-shaped plate that is cut in both dimensions; each rank has one box of it.

waywiser run -n 4 python examples/09_halo_exchange.py
"""

import numpy as np

import waywiser as ww

STEPS = 200

group = ww.join()
grid = ww.GridPartition(group, (64, 48), ghost=1, periodic=(True, False))

# The boxes with ghosts; those beyond the plate's two edges have no owner and stay cold.
plate = np.zeros(grid.local_shape)
speed = np.zeros(grid.local_shape, np.float32)
rows, columns = (first + np.arange(count) for first, count in zip(grid.first, grid.count, strict=True))
plate[grid.interior] = 1000.0 * np.outer(rows == 32, columns == 24)
speed[grid.interior] = 0.1 + 0.1 * np.outer(rows < 32, columns > 0)

halo = ww.HaloExchange(group, grid, [plate, speed])
halo.tune(0.05)  # measures the variants on these fields, and keeps the fastest
halo.remove(speed)  # its ghosts never change again; tunes again for the one that is left

for _step in range(STEPS):
    halo.exchange()
    flow_down = (speed[1:, 1:-1] + speed[:-1, 1:-1]) / 2 * (plate[1:, 1:-1] - plate[:-1, 1:-1])
    flow_right = (speed[1:-1, 1:] + speed[1:-1, :-1]) / 2 * (plate[1:-1, 1:] - plate[1:-1, :-1])
    plate[grid.interior] += flow_down[1:] - flow_down[:-1] + flow_right[:, 1:] - flow_right[:, :-1]

warmest = group.all_reduce(plate[grid.interior].max(keepdims=True), op="max").item()
heat = group.all_reduce(plate[grid.interior].sum(keepdims=True)).item()
if group.rank == 0:
    print(f"after {STEPS} steps: {heat:.6f} of 1000 are left, the warmest point has {warmest:.6f}", flush=True)
