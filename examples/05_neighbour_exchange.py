"""Heat spreads over a plate that is cut into strips, one for each rank; neighbours exchange their outermost rows.

waywiser run -n 4 python examples/05_neighbour_exchange.py
"""

import numpy as np

import waywiser as ww

ROWS, COLUMNS, STEPS = 64, 48, 200

group = ww.join()
rows = ROWS // group.size + (group.rank < ROWS % group.size)
first = group.rank * (ROWS // group.size) + min(group.rank, ROWS % group.size)

# The strip with a row of each neighbour above and below; edges of the plate have no neighbour and stay cold.
plate = np.zeros((rows + 2, COLUMNS))
if first <= ROWS // 2 < first + rows:
    plate[ROWS // 2 - first + 1, COLUMNS // 2] = 1000

exchanges = []
if group.rank > 0:
    exchanges.append(ww.Exchange(group.rank - 1, give=plate[1], take=plate[0]))
if group.rank < group.size - 1:
    exchanges.append(ww.Exchange(group.rank + 1, give=plate[-2], take=plate[-1]))

for _step in range(STEPS):
    group.neighbor_exchange(exchanges)
    inner = plate[1:-1, 1:-1]
    around = plate[:-2, 1:-1] + plate[2:, 1:-1] + plate[1:-1, :-2] + plate[1:-1, 2:]
    inner += 0.2 * (around - 4 * inner)

warmest = group.all_reduce(plate[1:-1].max(keepdims=True), op="max").item()
heat = group.all_reduce(plate[1:-1].sum(keepdims=True)).item()
if group.rank == 0:
    print(f"after {STEPS} steps: {heat:.6f} of 1000 are left, the warmest point has {warmest:.6f}", flush=True)
