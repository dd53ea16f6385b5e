"""One exchange between GPUs in a kernel of CuPy, Numba or Triton; 12_languages_cuda.cu is the same in C++.

Each rank puts its numbers into the memory of the next one, in one kernel with the wait for those of the one before.
Rank and digest of the bytes that have come are printed: they are equal in all languages.

    waywiser run -n 2 python examples/12_languages.py cupy       (or numba, triton)
"""

import sys
from pathlib import Path

import numpy as np

import waywiser as ww

COUNT = 1024
SIGNAL, GIVEN, TAKEN = 0, 64, 8192  # offsets in the heap, in bytes


def with_cupy(heap: ww.Heap, team: ww.HeapTeam, gpu: int) -> None:
    import cupy

    cupy.cuda.Device(gpu).use()
    code = Path(__file__).with_name("12_exchange.cuh").read_text()
    kernel = cupy.RawKernel(code, "exchange", options=ww.nvrtc_options())
    stream = cupy.cuda.Stream(non_blocking=True)
    words = [np.frombuffer(each, np.dtype((np.void, len(each))))[0] for each in (heap.terms(stream.ptr), team.terms())]
    with stream:
        kernel((1,), (256,), tuple(words))
    heap.synchronize(stream.ptr)


def with_numba(heap: ww.Heap, team: ww.HeapTeam, gpu: int) -> None:
    from numba import cuda

    from waywiser import numba as ranks

    cuda.select_device(gpu)

    @cuda.jit
    def exchange(given, heap, team):  # type: ignore[no-untyped-def]
        for i in range(cuda.threadIdx.x, COUNT, cuda.blockDim.x):
            given[i] = np.float32(1000) * ranks.rank(heap) + np.float32(0.5) * i
        after = (ranks.rank(heap) + 1) % ranks.size(heap)
        ranks.put_with_signal_block(heap, TAKEN, GIVEN, 4 * COUNT, SIGNAL, 1, ranks.ADD, after)
        ranks.wait_until_block(heap, SIGNAL, ranks.GE, 1, -1)
        ranks.barrier_block(heap, team)

    stream = cuda.stream()
    terms = ranks.Terms(heap, team)
    exchange[1, 256, stream](cuda.as_cuda_array(heap.array(COUNT, np.float32, GIVEN)), terms.heap, terms.team)
    stream.synchronize()
    heap.check()


def with_triton(heap: ww.Heap, team: ww.HeapTeam, gpu: int) -> None:
    import torch
    from exchange_triton import exchange

    from waywiser import triton as ranks

    torch.cuda.set_device(gpu)
    table = ranks.table(heap, team)
    exchange[(1,)](table.data_ptr(), COUNT, SIGNAL, GIVEN, TAKEN)
    torch.cuda.synchronize()
    heap.check()


def digest(data: bytes) -> int:
    value = 0xCBF29CE484222325
    for each in data:
        value = (value ^ each) * 0x100000001B3 % 2**64
    return value


def main() -> None:
    ways = {"cupy": with_cupy, "numba": with_numba, "triton": with_triton}
    if len(sys.argv) != 2 or sys.argv[1] not in ways:
        sys.exit(f"usage: 12_languages.py {'|'.join(ways)}")
    gpus = ww.cuda_gpus()
    with ww.join(gpus=gpus) as group:
        gpu = group.rank % len(gpus)
        heap = ww.Heap(group, "languages", 1 << 16, gpu=gpu)
        ways[sys.argv[1]](heap, heap.world(), gpu)
        taken = heap.array(COUNT, np.float32, TAKEN).numpy()
        print(f"rank {group.rank} of {group.size}: {digest(taken.tobytes()):016x}")
        group.barrier()


if __name__ == "__main__":
    main()
