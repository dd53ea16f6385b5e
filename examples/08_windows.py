"""A picture of the Mandelbrot set: each rank computes some rows and writes them into the memory of rank 0.

waywiser run -n 3 python examples/08_windows.py
"""

import numpy as np

import waywiser as ww

ROWS, COLUMNS = 15, 60

group = ww.join()
picture = np.zeros((ROWS, COLUMNS), dtype=np.uint8)
finished = np.zeros(group.size, dtype=np.uint64)
rows_of, finished_of = group.expose(picture), group.expose(finished)

for row in range(group.rank, ROWS, group.size):
    point = np.linspace(-2.2, 0.8, COLUMNS) + 1j * (1.1 - 2.2 * row / (ROWS - 1))
    value, steps = np.zeros_like(point), np.zeros(COLUMNS, dtype=np.uint8)
    for _step in range(50):
        inside = abs(value) < 2
        steps += inside
        value[inside] = value[inside] ** 2 + point[inside]
    group.put(steps, rows_of, to=0, offset=row * COLUMNS)
group.signal(finished_of, to=0, offset=group.rank * 8, value=1)

if group.rank == 0:
    for rank in range(group.size):
        group.wait(finished_of, offset=rank * 8, at_least=1)
    for line in picture:
        print("".join(" .:*#"[min(steps // 4, 4)] for steps in line).rstrip(), flush=True)
group.barrier()  # rank 0 has all rows

middle = group.get(np.empty(COLUMNS, dtype=np.uint8), rows_of, source=0, offset=ROWS // 2 * COLUMNS)
total = group.all_reduce(int((middle == 50).sum()))
if group.rank == 0:
    print(f"each of the ranks sees {total // group.size} points of the set in the middle row")
group.barrier()  # nobody reads any longer
