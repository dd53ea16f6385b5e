"""Sends arrays between two ranks: blocking, in the background, and with asyncio.

waywiser run -n 2 python examples/03_send_arrays.py
"""

import asyncio

import numpy as np

import waywiser as ww

group = ww.join()
other = 1 - group.rank

# Blocking. Shape is the program's affair: bytes and element type must agree.
if group.rank == 0:
    group.send(np.arange(6.0).reshape(2, 3), to=other)
else:
    matrix = group.recv(np.empty((2, 3)), source=other)
    print(f"rank 1 got a matrix of sum {matrix.sum():.0f}", flush=True)

# In the background, several at once; tags tell them apart.
outgoing = [np.full(1 << 20, group.rank + tag, dtype=np.float32) for tag in range(3)]
incoming = [np.empty(1 << 20, dtype=np.float32) for _ in range(3)]
futures = [group.start_recv(array, other, tag) for tag, array in enumerate(incoming)]
futures += [group.start_send(array, other, tag) for tag, array in enumerate(outgoing)]
for future in futures:
    future.wait()
print(f"rank {group.rank} got {[float(array[0]) for array in incoming]}", flush=True)


# Beside other tasks of an event loop.
async def ask_and_answer() -> None:
    answer = np.empty(1, dtype=np.int64)
    question = group.start_send(np.array([group.rank], dtype=np.int64), other)
    await asyncio.gather(group.start_recv(answer, other), question)
    print(f"rank {group.rank} heard from rank {answer[0]}", flush=True)


asyncio.run(ask_and_answer())
