"""The table of operations that `waywiser bench` can time."""

from __future__ import annotations

from dataclasses import dataclass

from waywiser.errors import InputError

SMALLEST, LARGEST = 8, 64 << 20


@dataclass(frozen=True)
class Operation:
    """One row. `shape` determines the columns of its table.

    `shape`: "latency", "bandwidth", "rate" (bandwidth and messages), "collective", "overlap" or "startup".
    `halves`: a call is a round trip, its latency half of it. `ways`: directions that bytes move in at once.
    """

    name: str
    title: str
    shape: str
    halves: bool = False
    ways: int = 1
    sizes: tuple[int, int] = (SMALLEST, LARGEST)
    osu: str = ""
    from_kernel: bool = False  # timed by kernels only

    @property
    def streams(self) -> bool:
        """Whether a call is a window of messages."""
        return self.shape in ("bandwidth", "rate")

    @property
    def collective(self) -> bool:
        return self.shape == "collective"

    @property
    def sized(self) -> bool:
        return self.sizes != (0, 0)


_NONE = (0, 0)
_TO_MANY = (SMALLEST, 16 << 20)

OPERATIONS: dict[str, Operation] = {
    one.name: one
    for one in (
        Operation("latency", "Latency: half a ping-pong", "latency", halves=True, osu="latency"),
        Operation("bandwidth", "Bandwidth: windows of messages one way", "bandwidth", osu="bw"),
        Operation("bidirectional", "Bandwidth both ways at once", "bandwidth", ways=2, osu="bibw"),
        Operation("message_rate", "Message rate of one pair", "rate", sizes=(SMALLEST, 64 << 10)),
        Operation("multi_latency", "Latency of all pairs at once", "latency", halves=True, osu="multi_lat"),
        Operation("multi_bandwidth", "All pairs at once", "rate", osu="mbw_mr"),
        Operation("put", "One-sided put, until it has arrived", "latency", osu="put_latency"),
        Operation("get", "One-sided get", "latency", osu="get_latency"),
        Operation("put_bandwidth", "One-sided puts", "bandwidth", osu="put_bw"),
        Operation("get_bandwidth", "One-sided gets", "bandwidth", osu="get_bw"),
        Operation("signal", "Signal, until it is seen: half a ping-pong", "latency", halves=True, sizes=_NONE,
                  from_kernel=True),
        Operation("put_message", "Message that a block puts, until it is seen: half a ping-pong", "latency",
                  halves=True, sizes=(SMALLEST, 16 << 20), from_kernel=True),
        Operation("atomics", "Atomic fetch_add of a word of another rank", "latency", sizes=_NONE, from_kernel=True),
        Operation("barrier", "Barrier", "collective", sizes=_NONE, osu="barrier"),
        Operation("broadcast", "Broadcast", "collective", osu="bcast"),
        Operation("reduce", "Reduce: sum of float32", "collective", osu="reduce"),
        Operation("all_reduce", "All-reduce: sum of float32", "collective", osu="allreduce"),
        Operation("reduce_scatter", "Reduce-scatter: sum of float32", "collective", sizes=_TO_MANY,
                  osu="reduce_scatter"),
        Operation("all_gather", "All-gather", "collective", sizes=_TO_MANY, osu="allgather"),
        Operation("all_to_all", "All-to-all", "collective", sizes=_TO_MANY, osu="alltoall"),
        Operation("gather", "Gather", "collective", sizes=_TO_MANY, osu="gather"),
        Operation("scatter", "Scatter", "collective", sizes=_TO_MANY, osu="scatter"),
        Operation("scan", "Scan: sums of float32 up to each rank", "collective"),
        Operation("exscan", "Exscan: sums of float32 below each rank", "collective"),
        Operation("neighbor_exchange", "Exchange with both neighbours in a ring", "collective", sizes=_TO_MANY,
                  osu="neighbor_alltoall"),
        Operation("prepared_exchange", "Prepared exchange with both neighbours in a ring", "collective",
                  sizes=_TO_MANY),
        Operation("overlap", "Overlap of send and receive with computing", "overlap"),
        Operation("overlap_all_reduce", "Overlap of all-reduce with computing", "overlap", osu="iallreduce"),
        Operation("startup", "Start-up: launcher, all ranks, first barrier", "startup", sizes=_NONE, osu="init"),
    )
}  # fmt: skip
_BY_OTHER_NAME = {one.osu: one.name for one in OPERATIONS.values() if one.osu}
_GROUPS = {
    "collectives": tuple(one.name for one in OPERATIONS.values() if one.collective),
    "messages": ("latency", "bandwidth", "bidirectional", "message_rate"),
    "one_sided": ("put", "get", "put_bandwidth", "get_bandwidth"),
    "all": tuple(one.name for one in OPERATIONS.values() if not one.from_kernel),
}
FROM_KERNEL = ("put", "get", "put_message", "signal", "atomics", "barrier")
DEFAULT = ("latency", "bandwidth", "bidirectional", "all_reduce")


def operations_named(words: list[str]) -> list[Operation]:
    """Names, the names of OSU's benchmarks, or groups of them. Raises InputError."""
    found: dict[str, Operation] = {}
    for word in words:
        plain = word.lower().replace("-", "_").removeprefix("osu_")
        names = _GROUPS.get(plain, (plain if plain in OPERATIONS else _BY_OTHER_NAME.get(plain, ""),))
        for name in names:
            if name not in OPERATIONS:
                raise InputError(f"{word!r} is not a benchmark: write some of {', '.join((*_GROUPS, *OPERATIONS))}")
            found[name] = OPERATIONS[name]
    return list(found.values())


def window_of(operation: Operation, size: int) -> int:
    """The number of messages in flight: 64 as in OSU's, fewer for large messages, at least 4."""
    return max(4, min(64, (16 << 20) // max(size, 1))) if operation.streams else 1
