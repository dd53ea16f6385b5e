"""A field that outlives its program: some ranks write it, another number of ranks reads it and goes on.

waywiser run -n 3 python examples/14_files.py FOLDER
waywiser run -n 2 python examples/14_files.py FOLDER
"""

import json
import sys
from pathlib import Path

import numpy as np

import waywiser as ww

ROWS, WIDE = 1200, 500

folder = Path(sys.argv[1])
newest = folder / "newest"

group = ww.join()
mine = range(ROWS * group.rank // group.size, ROWS * (group.rank + 1) // group.size)
field = np.repeat(np.array(mine, dtype=float), WIDE).reshape(-1, WIDE)
step = 0

# Go on from what is there: the rows of this rank lie in the files of one or several ranks of the last time.
if newest.exists():
    saved = json.loads(newest.read_text())
    step = saved["step"]
    for first, last in saved["parts"]:
        low, high = max(first, mine.start), min(last, mine.stop)
        if low < high:
            with ww.File(folder / f"{step}.{first}") as file:
                file.read_into(
                    field[low - mine.start : high - mine.start], offset=(low - first) * WIDE * field.itemsize
                )
group.barrier()  # all have looked before one writes

field += 1
step += 1

# Each rank its rows; only when all are on the device is their step the newest one.
with ww.File(folder / f"{step}.{mine.start}", "w") as file:
    file.write(field)
parts = group.all_gather_objects((mine.start, mine.stop))
if group.rank == 0:
    with ww.File(newest, "w") as file:
        file.write(np.frombuffer(json.dumps({"step": step, "parts": parts}).encode(), np.uint8))

total = group.all_reduce(np.array([field.sum()])).item()
if group.rank == 0:
    print(f"step {step}, by {group.size} ranks: the mean of {ROWS} rows is {total / (ROWS * WIDE)}", flush=True)
