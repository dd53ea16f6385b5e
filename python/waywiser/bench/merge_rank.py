"""A rank of `bench merge`: two tables of random keys, shuffled and joined; the result is checked.

`waywiser run -n N python -m waywiser.bench.merge_rank ORDER`; rank 0 prints one line of JSON.
"""

from __future__ import annotations

import json
import math
import sys
import time
from collections import Counter
from typing import Any

import numpy

from waywiser.errors import CorruptionError
from waywiser.group.group import Group
from waywiser.group.joining import join
from waywiser.table.frames import arrow
from waywiser.table.shuffle import Shuffle, whole

MOST_ROUNDS = 1000
Numbers = numpy.ndarray[Any, numpy.dtype[numpy.uint64]]


def mixed(numbers: Numbers) -> Numbers:
    """Another random-looking number for each (the finish of splitmix64), which makes keys of row numbers."""
    x = numbers + numpy.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> numpy.uint64(30))) * numpy.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> numpy.uint64(27))) * numpy.uint64(0x94D049BB133111EB)
    made: Numbers = x ^ (x >> numpy.uint64(31))
    return made


def hash_of(keys: Numbers, left: Numbers, right: Numbers) -> int:
    """Of the rows of a result, in any order."""
    return int(mixed(keys ^ mixed(left ^ mixed(right))).sum(dtype=numpy.uint64))


def numbered(first: int, count: int) -> Numbers:
    return numpy.arange(first, first + count, dtype=numpy.uint64)


class Tables:
    """The two tables of one rank, of `rows` rows each: a unique key and a payload of 8 bytes. As many rows of the right
    one as `match` says have their partner in the left table of some rank, all ranks alike often.
    """

    def __init__(self, rank: int, size: int, rows: int, match: float) -> None:
        whole = rows * size
        self.matching = int(rows * match)
        step = next(each for each in range(whole * 5 // 8 + 1, 2 * whole + 2) if math.gcd(each, whole) == 1)
        partners = (numbered(rank * self.matching, self.matching) * numpy.uint64(step)) % numpy.uint64(whole)
        alone = numbered(whole + rank * (rows - self.matching), rows - self.matching)
        payload = numbered(rank * rows, rows)
        chance = numpy.random.default_rng(rank)
        order = chance.permutation(rows)
        numbers = numpy.concatenate([partners, alone])
        self.left = _table("left", mixed(payload), payload)
        self.right = _table("right", mixed(numbers)[order], payload[order])
        self.hash = hash_of(mixed(partners), partners, payload[: self.matching])


def _table(name: str, keys: Numbers, payload: Numbers) -> Any:
    return arrow().table({"key": keys.view(numpy.int64), name: payload.view(numpy.int64)})


def moved(group: Group, data: Any, ways: Counter[str]) -> Any:
    """The rows of all ranks that belong here. `ways`: bytes to others, added by way."""
    shuffle = Shuffle(group, data)
    shuffle.insert(data, on="key")
    mine = whole([rows for _, rows in shuffle])
    for peer in shuffle.counts().peers:
        for way in peer.ways:
            ways[way.way] += way.bytes
    return mine


def check(group: Group, tables: Tables, result: Any) -> None:
    """Raises CorruptionError at all ranks unless all rows of the join are there, and no others."""
    columns = [result[name].to_numpy().view(numpy.uint64) for name in ("key", "left", "right")]
    told = numpy.array([tables.matching, result.num_rows, tables.hash, hash_of(*columns)], numpy.uint64)
    wanted, rows, hash_wanted, found = (int(each) for each in group.all_reduce(told, op="sum"))
    if rows != wanted:
        raise CorruptionError(f"merge: {rows} rows in place of {wanted}")
    if found != hash_wanted:
        raise CorruptionError("merge: the rows have another hash than those of the tables")


def timed(group: Group, order: dict[str, Any]) -> dict[str, Any]:
    """Rounds until `seconds` have passed; the first one warms up. Of each round the times at the slowest rank."""
    tables = Tables(group.rank, group.size, order["rows"], order["match"])
    rounds: list[list[float]] = []
    until = time.perf_counter() + order["seconds"]
    while True:
        ways: Counter[str] = Counter()
        group.barrier()
        begun = time.perf_counter()
        left = moved(group, tables.left, ways)
        right = moved(group, tables.right, ways)
        met = time.perf_counter()
        result = left.join(right, "key", join_type="inner")
        ended = time.perf_counter()
        check(group, tables, result)
        told = numpy.array([ended - begun, met - begun, ended - met, float(time.perf_counter() >= until)])
        whole, exchange, local, over = (float(each) for each in group.all_reduce(told, op="max"))
        rounds.append([whole, exchange, local])
        if (over and len(rounds) > 1) or len(rounds) == MOST_ROUNDS:
            break
    everything: Counter[str] = Counter()
    for name in sorted({name for each in _texts(group, sorted(ways)) for name in each}):
        everything[name] = int(group.all_reduce(numpy.array([ways[name]]), op="sum")[0])
    rows = int(group.all_reduce(numpy.array([result.num_rows]), op="sum")[0])
    return {"rounds": rounds[1:], "rows": rows, "ways": dict(everything)}


def _texts(group: Group, mine: list[str]) -> list[list[str]]:
    """Of each rank."""
    told = numpy.frombuffer(json.dumps(mine).ljust(1024).encode(), numpy.uint8)
    return [json.loads(bytes(each)) for each in group.all_gather(told)]


def main(order: dict[str, Any]) -> None:
    arrow().set_cpu_count(order["threads"])
    with join(order["timeout"]) as group:
        found = timed(group, order)
        if group.rank == 0:
            print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
