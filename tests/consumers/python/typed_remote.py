"""The calls on GPUs of a server, which nobody starts: written down for their types only."""

from __future__ import annotations

import numpy as np

import waywiser as ww


def remote_gpus(address: str) -> None:
    gpu: ww.RemoteGpu
    with ww.remote(address, key="key", gpu=0, timeout=60, road="pinned") as gpu:
        gpu.use_road("pipelined")
        assert gpu.road("input", 1000) == "pipelined"
        assert gpu.encrypted_by in ("openssl", "kernel", "")
        ones: ww.RemoteArray = gpu.array(np.ones(5))
        total = gpu.run("repeat_add", ones, gpu.zeros(5), times=1)
        kernel = ww.CudaKernel('extern "C" __global__ void twice(double* x) { x[threadIdx.x] *= 2; }', "twice")
        gpu.launch(kernel, ones, grid=1, block=(5, 1))
        stream: ww.RemoteStream = gpu.stream()
        begun: ww.RemoteEvent = gpu.event()
        stream.record(begun)
        stream.wait(begun)
        stream.launch(kernel, stream.run("add", ones, ones), grid=1, block=5)
        stream.synchronize()
        begun.synchronize()
        assert stream.get(ones).size == 5 and begun.seconds_since(begun) == 0
        gpu.flush()
        with ww.remote(address, gpu=1, data_plain=True) as other:
            assert other.data_encrypted_by == ""
            assert other.copy_of(ones).shape == (5,)
            assert not other.copies_plain(gpu)
            mine = other.pinned(5)
            assert other.run_in_pieces("add", mine, mine, out=mine, piece=8) is mine
            assert ones.get(out=mine) is mine and other.pinned_by(mine) == "server"
        gpu.synchronize()
        assert total.get().sum() + np.asarray(total).sum() == 30 and gpu.account()["device"] > 0
    gpu.close()
