"""Sends arrays between the GPUs of two ranks: blocking, in the background, and with asyncio.

waywiser run -n 2 python examples/02_send_gpu_arrays.py

Without a GPU, virtual GPUs are used: results are right, times mean nothing. Arrays of NumPy, CuPy and PyTorch are
passed in the same way.
"""

import asyncio

import numpy as np

import waywiser as ww

gpus = ww.find_gpus(virtual=2)
group = ww.join(gpus=gpus)
other = 1 - group.rank
gpu = group.rank % len(gpus)

# Blocking. Number and type of the elements must agree; shapes may differ.
if group.rank == 0:
    group.send(gpus.array(np.arange(6.0).reshape(2, 3), gpu), to=other)
else:
    matrix = group.recv(gpus.empty((2, 3), gpu=gpu), source=other)
    print(f"rank 1 got a matrix of sum {matrix.numpy().sum():.0f} on gpu{matrix.gpu}", flush=True)

# In the background, several at once; tags tell them apart.
outgoing = [gpus.array(np.full(1 << 18, group.rank + tag, np.float32), gpu) for tag in range(3)]
incoming = [gpus.empty(1 << 18, np.float32, gpu) for _ in range(3)]
futures = [group.start_recv(array, other, tag) for tag, array in enumerate(incoming)]
futures += [group.start_send(array, other, tag) for tag, array in enumerate(outgoing)]
for future in futures:
    future.wait()
print(f"rank {group.rank} got {[float(array.numpy()[0]) for array in incoming]}", flush=True)


# Beside other tasks of an event loop; one end may be on the host.
async def ask_and_answer() -> None:
    answer = np.empty(1, dtype=np.int64)
    question = group.start_send(gpus.array(np.array([group.rank]), gpu), other)
    await asyncio.gather(group.start_recv(answer, other), question)
    print(f"rank {group.rank} heard from rank {answer[0]}", flush=True)


asyncio.run(ask_and_answer())
