"""A rank of `bench sharing`: exchanges the ghost cells of fields on the one GPU by three variants, in turn.

`waywiser run -n N python -m waywiser.bench.sharing_rank ORDER`; rank 0 prints one line of JSON.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import numpy

from waywiser import _core
from waywiser.errors import CorruptionError, Error, UnavailableError
from waywiser.group.gpus import GpuArray, Gpus, cuda_gpus, virtual_gpus
from waywiser.group.group import Group
from waywiser.group.joining import join
from waywiser.halo.exchange import HaloExchange, HaloVariant
from waywiser.halo.partition import GridPartition

_SAMPLE = 2e-3  # seconds that a sample takes at least, if not more exchanges than this
_MOST_EXCHANGES = 100
_LEAST_SAMPLES, _MOST_SAMPLES = 3, 10_000


class _Fields:
    """Fields of a periodic grid on the GPU; each cell has its number, so that ghosts can be checked."""

    def __init__(self, gpus: Gpus, grid: GridPartition, count: int) -> None:
        numbers: Any = numpy.arange(float(numpy.prod(grid.shape))).reshape(grid.shape)
        padded = numpy.pad(numbers, [(width, width) for width in grid.ghost], mode="wrap")
        parts = zip(grid.first, grid.local_shape, strict=True)
        self._wanted = padded[tuple(slice(first, first + cells) for first, cells in parts)]
        self._before = numpy.full_like(self._wanted, -1.0)
        self._before[grid.interior] = self._wanted[grid.interior]
        self.arrays: list[GpuArray] = [gpus.array(self._before) for _ in range(count)]

    def clear(self) -> None:
        for one in self.arrays:
            one.fill(self._before)

    def is_right(self) -> bool:
        return all((one.numpy() == self._wanted).all() for one in self.arrays)


def _checked(group: Group, halo: HaloExchange, fields: _Fields, variant: str) -> None:
    """Raises CorruptionError at all ranks."""
    fields.clear()
    halo.exchange()
    if wrong := group.all_reduce(int(not fields.is_right()), op="sum"):
        raise CorruptionError(f"{variant}: {wrong} of {group.size} ranks have wrong ghost cells")


def _sample(group: Group, halo: HaloExchange, exchanges: int) -> float:
    """Seconds of so many exchanges, at the slowest rank."""
    group.barrier()
    begun = time.perf_counter()
    for _ in range(exchanges):
        halo.exchange()
    return float(group.all_reduce(time.perf_counter() - begun, op="max"))


def main() -> None:
    """Raises as the group and the exchange."""
    order = json.loads(sys.argv[1])
    gpus = virtual_gpus(1) if order["virtual"] else cuda_gpus()
    with join(gpus=gpus, timeout=order["timeout"]) as group:
        grid = GridPartition(group, order["cells"], ghost=1, periodic=True)
        fields = _Fields(gpus, grid, order["fields"])
        halo = HaloExchange(group, grid, fields.arrays)
        variants: list[HaloVariant] = []
        left_out: dict[str, str] = {}
        for variant in order["variants"]:
            try:
                halo.use(variant)
            except UnavailableError as error:
                left_out[variant] = str(error)
                continue
            _checked(group, halo, fields, variant)
            variants.append(variant)
        spent = 0.0

        def take(which: int, exchanges: int, counts: bool) -> list[float]:
            nonlocal spent
            halo.use(variants[which])
            seconds = _sample(group, halo, exchanges)
            spent += seconds * counts
            return [seconds / exchanges]

        found = _core.contest(
            len(variants), take, least=_LEAST_SAMPLES, most=_MOST_SAMPLES, seconds=order["seconds"], aim=_SAMPLE,
            most_repetitions=_MOST_EXCHANGES, clock=lambda: spent,  # alike at all ranks
        )  # fmt: skip
        if group.rank == 0:
            medians = {variant: one.median for variant, one in zip(variants, found, strict=True)}
            samples = min((len(one.samples) for one in found), default=0)
            print(json.dumps({"seconds": medians, "samples": samples, "left_out": left_out}), flush=True)


if __name__ == "__main__":
    try:
        main()
    except Error as error:
        sys.exit(f"{type(error).__name__}: {error}")
