"""Random operations of a group whose results are known: every rank draws the same ones from one seed.

`arrays` says where arrays are: NumPy's here, or on GPUs.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np

import waywiser as ww

Array = np.ndarray[Any, Any]
DROPPED = 0.3
TYPES = ("uint8", "int32", "int64", "float32", "float64")
REDUCTIONS: dict[str, Callable[[list[Array]], Array]] = {
    "sum": lambda all_data: np.sum(all_data, axis=0, dtype=all_data[0].dtype),
    "min": lambda all_data: np.minimum.reduce(all_data),
    "max": lambda all_data: np.maximum.reduce(all_data),
}


class WrongResult(Exception):
    """Bytes that are not those that were sent."""


class HostArrays:
    """Arrays of NumPy, and calls that return when they are complete."""

    def make(self, values: Array) -> Any:
        return values.copy()

    def empty(self, shape: tuple[int, ...], dtype: str) -> Any:
        return np.full(shape, 77).astype(dtype)

    def values(self, array: Any) -> Array:
        return np.asarray(array)


class Program:
    """The operations of one job, as one rank does them."""

    def __init__(self, group: ww.Group, seed: int, largest: int, arrays: Any, kinds: tuple[str, ...] = ()) -> None:
        self.group, self.seed, self.largest, self.arrays = group, seed, largest, arrays
        self.shared = random.Random(seed)  # the same at all ranks
        self.number = 0
        self.kinds = kinds or tuple(name.removeprefix("_do_") for name in dir(self) if name.startswith("_do_"))
        self.kind = ""

    def step(self) -> None:
        """One operation, verified. Raises WrongResult, or what the group raises."""
        self.number += 1
        self.kind = self.shared.choice(self.kinds)
        try:
            getattr(self, f"_do_{self.kind}")(self.group)
        except WrongResult as error:
            raise WrongResult(f"seed {self.seed}, operation {self.number} ({self.kind}): {error}") from None

    def _count(self) -> int:
        edge = self.shared.choice((0, 1, 3, 1023, 1024, 8192, 65536, None, None, None, None))
        drawn = int(2 ** self.shared.uniform(0, np.log2(self.largest)))
        return min(drawn if edge is None else edge, self.largest)

    def _data(self, rank: int, count: int, dtype: str, what: int = 0) -> Array:
        noise = np.random.default_rng((self.seed, self.number, rank, what))
        return noise.integers(0, 25, count).astype(dtype)  # sums are exact, and fit into a byte

    def _drawn(self, group: ww.Group) -> tuple[str, list[Array]]:
        """A type, and what each rank of `group` gives."""
        dtype, count = self.shared.choice(TYPES), self._count()
        return dtype, [self._data(rank, count, dtype) for rank in range(group.size)]

    def _expect(self, found: Any, wanted: Array) -> None:
        self._expect_values(self.arrays.values(found), wanted)

    def _expect_values(self, values: Array, wanted: Array) -> None:
        if not np.array_equal(values.reshape(-1), wanted.reshape(-1)):
            wrong = np.flatnonzero(values.reshape(-1) != wanted.reshape(-1))
            raise WrongResult(f"{len(wrong)} of {wanted.size} {wanted.dtype} are wrong, the first at {wrong[:1]}")

    def _do_sendrecv(self, group: ww.Group) -> None:
        dtype, data = self._drawn(group)
        shift = self.shared.randrange(group.size)
        to, source = (group.rank + shift) % group.size, (group.rank - shift) % group.size
        out = self.arrays.empty(data[0].shape, dtype)
        group.sendrecv(self.arrays.make(data[group.rank]), to, out, source)
        self._expect(out, data[source])

    def _do_all_reduce(self, group: ww.Group) -> None:
        _, data = self._drawn(group)
        op = self.shared.choice(sorted(REDUCTIONS))
        self._expect(group.all_reduce(self.arrays.make(data[group.rank]), op=op), REDUCTIONS[op](data))

    def _do_reduce(self, group: ww.Group) -> None:
        dtype, data = self._drawn(group)
        op, root = self.shared.choice(sorted(REDUCTIONS)), self.shared.randrange(group.size)
        out = self.arrays.empty(data[0].shape, dtype)
        group.reduce(self.arrays.make(data[group.rank]), out, op=op, root=root)
        if group.rank == root:
            self._expect(out, REDUCTIONS[op](data))

    def _do_broadcast(self, group: ww.Group) -> None:
        _, data = self._drawn(group)
        root = self.shared.randrange(group.size)
        mine = self.arrays.make(data[group.rank])
        group.broadcast(mine, root=root)
        self._expect(mine, data[root])

    def _do_all_gather(self, group: ww.Group) -> None:
        dtype, data = self._drawn(group)
        out = self.arrays.empty((group.size, data[0].size), dtype)
        self._expect(group.all_gather(self.arrays.make(data[group.rank]), out), np.stack(data))

    def _blocks(self, group: ww.Group) -> tuple[str, list[Array]]:
        dtype, count = self.shared.choice(TYPES), self._count() // group.size
        shape = (group.size, count)
        return dtype, [self._data(rank, group.size * count, dtype).reshape(shape) for rank in range(group.size)]

    def _do_reduce_scatter(self, group: ww.Group) -> None:
        dtype, data = self._blocks(group)
        out = self.arrays.empty((data[0].shape[1],), dtype)
        group.reduce_scatter(self.arrays.make(data[group.rank]), out)
        self._expect(out, REDUCTIONS["sum"](data)[group.rank])

    def _do_all_to_all(self, group: ww.Group) -> None:
        dtype, data = self._blocks(group)
        out = self.arrays.empty(data[0].shape, dtype)
        group.all_to_all(self.arrays.make(data[group.rank]), out)
        self._expect(out, np.stack([block[group.rank] for block in data]))

    def _do_barrier(self, group: ww.Group) -> None:
        group.barrier()

    def _do_part(self, group: ww.Group) -> None:
        """The same in a part of the group: ranks by color."""
        colors = [self.shared.randrange(2) for _ in range(group.size)]
        kind = self.shared.choice([kind for kind in self.kinds if kind not in ("part", "window")])
        before = self.shared.getstate()
        part = group.split(colors[group.rank])
        assert part is not None
        getattr(self, f"_do_{kind}")(part)
        # Parts of unlike sizes draw unlike numbers.
        self.shared.setstate(before)
        self.shared.random()

    def _do_window(self, group: ww.Group) -> None:
        dtype, data = self._drawn(group)
        shift = self.shared.randrange(group.size)
        to, source = (group.rank + shift) % group.size, (group.rank - shift) % group.size
        mine = self.arrays.empty(data[0].shape, dtype)
        window = group.expose(mine)
        group.put(self.arrays.make(data[group.rank]), window, to)
        group.flush()
        group.barrier()
        self._expect(mine, data[source])
        got = self.arrays.empty(data[0].shape, dtype)
        group.get(got, window, to)
        self._expect(got, data[group.rank])
        group.barrier()


class HostProgram(Program):
    """Also what only arrays of hosts can do: futures, tags, roots."""

    def _do_messages(self, group: ww.Group) -> None:
        """Many at once, by tag, received in another order than they are sent."""
        if group.size == 1:
            return
        count, order = self.shared.randint(1, 12), self.shared.random()
        sizes = [self._count() for _ in range(count)]
        to, source = (group.rank + 1) % group.size, (group.rank - 1) % group.size
        outs = [np.full(size, 77, np.uint8) for size in sizes]
        receives = [group.start_recv(out, source, tag) for tag, out in enumerate(outs)]
        tags = list(range(count))
        random.Random(order).shuffle(tags)
        sends = [group.start_send(self._data(group.rank, sizes[tag], "uint8", tag), to, tag) for tag in tags]
        for future in (*sends, *receives):
            future.wait()
        for tag, out in enumerate(outs):
            self._expect(out, self._data(source, sizes[tag], "uint8", tag))

    def _do_overlap(self, group: ww.Group) -> None:
        """Several collectives at once; some futures are dropped, and their operations go on."""
        drawn = [self._drawn(group) for _ in range(self.shared.randint(1, 4))]
        futures = [group.start_all_reduce(data[group.rank]) for _, data in drawn]
        kept = [self.shared.random() >= DROPPED for _ in drawn]
        waited = [future if keep else None for future, keep in zip(futures, kept, strict=True)]
        del futures
        for future, (_, data) in zip(reversed(waited), reversed(drawn), strict=True):
            if future is not None:
                self._expect(future.wait(), REDUCTIONS["sum"](data))

    def _do_gather(self, group: ww.Group) -> None:
        dtype, data = self._drawn(group)
        root = self.shared.randrange(group.size)
        out = self.arrays.empty((group.size, data[0].size), dtype)
        group.gather(data[group.rank], out, root=root)
        if group.rank == root:
            self._expect(out, np.stack(data))

    def _do_scatter(self, group: ww.Group) -> None:
        dtype, data = self._blocks(group)
        root = self.shared.randrange(group.size)
        out = self.arrays.empty((data[0].shape[1],), dtype)
        group.scatter(data[root], out, root=root)
        self._expect(out, data[root][group.rank])
