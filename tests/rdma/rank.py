"""One of two ranks: executes the commands on its standard input and reports when each is done.

calls BYTES     every call of a group, with data that tells who made it; at the end: intact, bytes sent in messages
encrypted       what encrypts messages to the other
messages        messages both ways until an error comes; after a few: under way
"""

from __future__ import annotations

import sys
import time

import numpy as np

import waywiser as ww

group = ww.join()
rank, other = group.rank, 1 - group.rank


def noise(seed: int, count: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, count, dtype=np.uint8)


def expect(found: object, wanted: object, what: str) -> None:
    if not np.array_equal(found, wanted):
        sys.exit(f"rank {rank}: {what} is wrong")


def exchange(largest: int) -> int:
    counts = (0, 1, 7, 1000, 8191, 70_001, 300_000, largest)
    for number, count in enumerate(counts):
        mine, into = noise(number * 2 + rank, count), np.empty(count, np.uint8)
        expect(group.sendrecv(mine, other, into, other), noise(number * 2 + other, count), f"message of {count} bytes")
    return sum(counts)


def tagged() -> None:
    requests = [group.start_recv(np.empty(2000, np.int32), other, tag) for tag in range(20)]
    for tag in reversed(range(20)):
        group.send(np.full(2000, 100 * rank + tag, np.int32), other, tag)
    for tag, request in enumerate(requests):
        expect(request.wait(), np.full(2000, 100 * other + tag), f"message with tag {tag}")


def collectives(count: int) -> None:
    numbers = np.arange(count, dtype=np.float64) + rank
    blocks = np.stack([numbers, numbers + 10])
    total = np.arange(count) * 2 + 1
    expect(group.all_reduce(numbers), total, "all_reduce")
    expect(group.all_gather(numbers)[other], np.arange(count) + other, "all_gather")
    expect(group.broadcast(numbers.copy(), root=1), np.arange(count) + 1, "broadcast")
    expect(group.all_to_all(blocks)[other], np.arange(count) + other + 10 * rank, "all_to_all")
    expect(group.reduce_scatter(blocks, np.empty(count)), total + 20 * rank, "reduce_scatter")
    group.barrier()


def messages() -> None:
    mine, into = np.full(200_000, rank + 1, np.uint8), np.empty(200_000, np.uint8)
    for turn in range(1_000_000_000):
        expect(group.sendrecv(mine, other, into, other), np.full(200_000, other + 1), "message")
        if turn == 2:
            print("under way", flush=True)


print("joined", flush=True)
for line in sys.stdin:
    verb, *arguments = line.split()
    begun = time.monotonic()
    try:
        if verb == "calls":
            sent = exchange(int(arguments[0]))
            tagged()
            collectives(3)
            collectives(50_000)
            print("intact", sent, flush=True)
        elif verb == "encrypted":
            print("encrypted by", group.encrypted_by(other), flush=True)
        else:
            group.timeout = float(arguments[0])
            messages()
    except RuntimeError as error:
        print("error", error, flush=True)
        sys.exit(3)
