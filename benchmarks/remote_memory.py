#!/usr/bin/env python3
"""Bytes up to a GPU and back, on a machine with one: from pinned and pageable memory of a client of `waywiser serve` on
this machine, which does not use CUDA, beside the CUDA driver's copies from page-locked memory in a process of its own,
and beside copies of the host from one ordinary array to another. Then the same from page-locked memory by TCP, over the
loopback device, plain and encrypted, beside messages of two ranks by the same road.

remote_memory.py [--nbytes 268435456] [--repeats 20]    # JSON: GB/s of the fastest and the median turn; of
                                                       # an addition in pieces and of zeros the seconds

The client and the process beside it take turns. All bytes that come back are compared after the last turn.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

import waywiser as ww

WAYS = ("pinned", "pageable")
WAYWISER = (sys.executable, "-c", "from waywiser.cli import main; main()")


def rates(times: list[float], nbytes: int) -> dict[str, float]:
    return {"best": nbytes / min(times) / 1e9, "median": nbytes / statistics.median(times) / 1e9}


def timed(call: Callable[[], Any]) -> float:
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


def local_copies(nbytes: int, repeats: int) -> dict[str, Any]:
    """By the CUDA driver, synchronously, from and into page-locked memory."""
    cuda = ctypes.CDLL("libcuda.so.1")

    def call(name: str, *arguments: Any) -> None:
        if code := getattr(cuda, name)(*arguments):
            raise RuntimeError(f"{name}: {code}")

    context, there, here = ctypes.c_void_p(), ctypes.c_uint64(), ctypes.c_void_p()
    size = ctypes.c_size_t(nbytes)
    call("cuInit", 0)
    call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
    call("cuCtxSetCurrent", context)
    call("cuMemAlloc_v2", ctypes.byref(there), size)
    call("cuMemHostAlloc", ctypes.byref(here), size, 0)
    values = np.ctypeslib.as_array((ctypes.c_uint8 * nbytes).from_address(here.value or 0))
    values[:] = np.arange(nbytes, dtype=np.uint8)
    up = [timed(lambda: call("cuMemcpyHtoD_v2", there, here, size)) for _ in range(repeats)]
    values[:] = 0
    down = [timed(lambda: call("cuMemcpyDtoH_v2", here, there, size)) for _ in range(repeats)]
    if not (values == np.arange(nbytes, dtype=np.uint8)).all():
        raise RuntimeError("other bytes came back")
    return {"up": rates(up, nbytes), "down": rates(down, nbytes)}


@contextmanager
def serving(folder: Path, at: str = "127.0.0.1:0", **settings: str) -> Iterator[tuple[str, Path]]:
    words = ["serve", "--listen", at, "--memory", "8G", "--new-key", "--key", str(folder / "key"), "--json"]
    server = subprocess.Popen([*WAYWISER, *words], stdout=subprocess.PIPE, text=True, env={**os.environ, **settings})
    assert server.stdout is not None
    try:
        yield json.loads(server.stdout.readline())["address"], folder / "key"
    finally:
        server.terminate()
        server.wait(30)


def remote_copies(gpu: ww.RemoteGpu, way: str, nbytes: int, repeats: int) -> dict[str, Any]:
    here = gpu.pinned(nbytes, np.uint8) if way == "pinned" else np.empty(nbytes, np.uint8)
    here[:] = np.arange(nbytes, dtype=np.uint8)
    there = gpu.array(here)
    gpu.synchronize()

    def put() -> None:
        gpu._core.put(there._number, 0, here)
        gpu.synchronize()

    up = [timed(put) for _ in range(repeats)]
    here[:] = 0
    down = [timed(lambda: there.get(out=here)) for _ in range(repeats)]
    if not (here == np.arange(nbytes, dtype=np.uint8)).all():
        raise RuntimeError("other bytes came back")
    return {"pinned_by": gpu.pinned_by(here), "up": rates(up, nbytes), "down": rates(down, nbytes)}


def memcpy(nbytes: int, repeats: int) -> dict[str, float]:
    """From one ordinary array to another: what any transfer between two processes takes at least once."""
    here, there = np.arange(nbytes, dtype=np.uint8), np.zeros(nbytes, np.uint8)
    found = rates([timed(lambda: np.copyto(there, here)) for _ in range(repeats)], nbytes)
    if not (there == here).all():
        raise RuntimeError("other bytes were copied")
    return found


def streaming_add(gpu: ww.RemoteGpu, nbytes: int, repeats: int) -> dict[str, float]:
    """Seconds of an addition of two pinned arrays that stream through the GPU, and of its three copies alone."""
    count = nbytes // 4
    x, y, z = (gpu.pinned(count, np.float32) for _ in range(3))
    x[:], y[:] = np.arange(count, dtype=np.float32), 1
    whole = [timed(lambda: gpu.run_in_pieces("add", x, y, out=z)) for _ in range(repeats)]
    if not (z == x + 1).all():
        raise RuntimeError("wrong sums")
    copies = []
    for _ in range(repeats):
        begin = time.perf_counter()
        there = gpu.array(x), gpu.array(y)
        gpu.synchronize()
        there[0].get(out=z)
        copies.append(time.perf_counter() - begin)
    return {"whole": statistics.median(whole), "copies": statistics.median(copies)}


def zeros(gpu: ww.RemoteGpu, nbytes: int, repeats: int) -> float:
    """Seconds until there is an array of zeros on the GPU, whose memory had other bytes before."""
    times: list[float] = []
    ones = np.ones(nbytes, np.uint8)
    for _ in range(repeats):
        before = gpu.array(ones)
        gpu.synchronize()
        del before
        gpu.synchronize()
        begin = time.perf_counter()
        made = gpu.zeros(nbytes, np.uint8)
        gpu.synchronize()
        times.append(time.perf_counter() - begin)
    if made.get().any():
        raise RuntimeError("other bytes than zeros")
    return statistics.median(times)


def messages(nbytes: int, repeats: int) -> dict[str, Any] | None:
    """Of two ranks that treat each other as ranks of different machines: by the first one, with the other's answer."""
    os.environ["WAYWISER_MACHINE"] = os.environ["WAYWISER_RANK"]
    group = ww.join()
    here, word, other = np.zeros(nbytes, np.uint8), np.zeros(1, np.uint8), 1 - group.rank
    if group.rank == 1:
        for _ in range(repeats):
            group.recv(here, other)
            group.send(word, other)
        for _ in range(repeats):
            group.recv(word, other)
            group.send(here, other)
        group.close()
        return None
    here[:] = np.arange(nbytes, dtype=np.uint8)
    up = [timed(lambda: (group.send(here, other), group.recv(word, other))) for _ in range(repeats)]
    here[:] = 0
    down = [timed(lambda: (group.send(word, other), group.recv(here, other))) for _ in range(repeats)]
    if not (here == np.arange(nbytes, dtype=np.uint8)).all():
        raise RuntimeError("other bytes came back")
    found = {"encrypted_by": group.encrypted_by(other), "up": rates(up, nbytes), "down": rates(down, nbytes)}
    group.close()
    return found


def client(address: str, key: str, nbytes: int, repeats: int) -> dict[str, Any]:
    with ww.remote(address, key=key, road="pipelined") as gpu:
        return remote_copies(gpu, "pinned", nbytes, repeats) | {"encrypted_by": gpu.encrypted_by}


def by_tcp(asked: argparse.Namespace, encrypted: bool) -> dict[str, Any]:
    """The rates of three turns, and the median of the client's as a share of that of the messages."""
    # A server encrypts unless it listens at the loopback address.
    address = address_of_this_machine() if encrypted else "127.0.0.1"
    if not address:
        return {"skipped": "this machine has no address but that of the loopback device"}
    at = f"{address}:0"
    road = {"WAYWISER_UCX_TLS": "tcp,self", "WAYWISER_ENCRYPT": str(int(encrypted))}
    turns: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder, serving(Path(folder), at, WAYWISER_MACHINE="server", **road) as where:
        for _ in range(3):
            turn = {"messages": apart(asked, "--messages", before=(*WAYWISER, "run", "-n", "2", "--plain"), **road)}
            turn["client"] = apart(asked, "--client", *map(str, where), WAYWISER_MACHINE="client", **road)
            if any((turn[each]["encrypted_by"] != "") != encrypted for each in turn):
                raise RuntimeError(f"encrypted by: {turn}")
            turns.append(turn)
    shares = {
        direction: statistics.median(turn["client"][direction]["median"] for turn in turns)
        / statistics.median(turn["messages"][direction]["median"] for turn in turns)
        for direction in ("up", "down")
    }
    return {"turns": turns, "of_messages": shares}


def address_of_this_machine() -> str:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # sends nothing
        except OSError:  # there is no way to another machine
            return ""
        return str(probe.getsockname()[0])


def apart(asked: argparse.Namespace, *words: str, before: tuple[str, ...] = (), **settings: str) -> dict[str, Any]:
    """What this program prints in a process of its own."""
    sizes = ("--nbytes", str(asked.nbytes), "--repeats", str(asked.repeats))
    command = [*before, sys.executable, __file__, *words, *sizes]
    done = subprocess.run(
        command, env={**os.environ, **settings}, capture_output=True, text=True, check=False, timeout=300
    )
    if done.returncode != 0:
        raise SystemExit(f"remote_memory.py: {' '.join(words)}: {done.stderr.strip()}")
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nbytes", type=int, default=256 << 20)
    parser.add_argument("--repeats", type=int, default=20)
    for each in ("--local", "--messages"):
        parser.add_argument(each, action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--client", nargs=2, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.local:
        print(json.dumps(local_copies(asked.nbytes, asked.repeats)))
        return
    if asked.messages:
        if found := messages(asked.nbytes, asked.repeats):
            print(json.dumps(found))
        return
    if asked.client:
        print(json.dumps(client(*asked.client, asked.nbytes, asked.repeats)))
        return
    turns: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder, serving(Path(folder)) as (address, key):
        for _ in range(3):
            turn: dict[str, Any] = {"local": apart(asked, "--local")}
            turn["memcpy"] = memcpy(asked.nbytes, asked.repeats)
            with ww.remote(address, key=key, road="pipelined") as gpu:
                for way in WAYS:
                    turn[way] = remote_copies(gpu, way, asked.nbytes, asked.repeats)
                turn["streaming_add"] = streaming_add(gpu, asked.nbytes, asked.repeats)
                turn["zeros"] = zeros(gpu, asked.nbytes, asked.repeats)
            turns.append(turn)
    shares = {
        f"{way}, {direction}": statistics.median(turn[way][direction]["median"] for turn in turns)
        / statistics.median(turn["local"][direction]["median"] for turn in turns)
        for way in WAYS
        for direction in ("up", "down")
    }
    copied = statistics.median(turn["memcpy"]["median"] for turn in turns)
    of_memcpy = {
        direction: statistics.median(turn["pageable"][direction]["median"] for turn in turns) / copied
        for direction in ("up", "down")
    }
    told = {
        "nbytes": asked.nbytes, "turns": turns, "of_the_local_pinned_rate": shares, "pageable_of_memcpy": of_memcpy,
        "by_tcp": {"plain": by_tcp(asked, encrypted=False), "encrypted": by_tcp(asked, encrypted=True)},
    }  # fmt: skip
    print(json.dumps(told, indent=2))


if __name__ == "__main__":
    main()
