"""What moved the bytes of a job, by mechanism, and who has counted them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from waywiser.look import machine
from waywiser.monitor.counters import KIND_NAMES, LINKS, NETWORK
from waywiser.running.evidence import Evidence, Flow
from waywiser.running.users import NCCL, has, maker_of
from waywiser.running.within import logged_ways

BY_KERNEL, BY_RANKS, BY_MACHINE, SEEN = "kernel", "ranks", "machine", "seen"


@dataclass(frozen=True)
class Moved:
    """What one mechanism moved. `bytes`: None if nothing counts them. `counted`: by the "kernel" for each connection,
    by the "ranks" of a group, for the whole "machine" while it was watched; "seen": it is there, and not counted."""

    mechanism: str
    between: str
    bytes: int | None
    rate: float
    counted: str


def mechanisms(seen: Evidence) -> list[Moved]:
    """What moved bytes, and what could."""
    return [*_of_groups(seen), *_of_memory(seen), *_of_connections(seen), *_of_log(seen), *_of_devices(seen)]


def _of_groups(seen: Evidence) -> Iterator[Moved]:
    for name in sorted({name for rank in seen.ours for name in rank.sent}):
        many = sum(rank.sent.get(name, 0) for rank in seen.ours)
        if many:
            ranks = (str(rank.rank) for rank in seen.ours if rank.sent.get(name))
            yield Moved(f"waywiser: {name}", f"from ranks {machine.named(ranks)}", many, 0.0, BY_RANKS)


def _of_memory(seen: Evidence) -> Iterator[Moved]:
    by_maker: dict[str, set[int]] = {}
    for name, ranks in seen.shared.items():
        if maker := maker_of(name):
            by_maker[maker] = by_maker.get(maker, set()) | ranks
    for maker, ranks in by_maker.items():
        who = machine.named(map(str, sorted(ranks)), 8)
        yield Moved(f"shared memory: {maker}", f"ranks {who}", None, 0.0, SEEN)


def _of_connections(seen: Evidence) -> Iterator[Moved]:
    rows: dict[tuple[str, str], list[Flow]] = {}
    for one in seen.flows:
        if one.peer == one.rank or (one.peer is None and not one.is_noticed and one.sent is not None):
            continue  # within a rank, or with what has started the job
        where = f"rank {one.rank} and {'others here' if one.here else 'other machines'}"
        if one.peer is not None:
            where = f"ranks {min(one.rank, one.peer)} and {max(one.rank, one.peer)}"
        rows.setdefault((one.interface or "no known interface", where), []).append(one)
    for (interface, where), flows in rows.items():
        known = [one for one in flows if one.sent is not None]
        # Between two ranks each end is a flow: what both have sent is all. Of others only this end is seen.
        many = sum((one.sent or 0) + (0 if one.peer is not None else one.received or 0) for one in known)
        rate = sum(one.rate for one in flows)
        yield Moved(f"TCP over {interface}", where, many if known else None, rate, BY_KERNEL if known else SEEN)


def _of_log(seen: Evidence) -> Iterator[Moved]:
    for way, count in logged_ways(seen).items() if has(seen, NCCL) else ():
        yield Moved(f"NCCL: {way}", f"{count} connections in its log", None, 0.0, SEEN)


def _of_devices(seen: Evidence) -> Iterator[Moved]:
    for kind, many in seen.moved.items():
        if kind in LINKS and kind != NETWORK and many:
            yield Moved(KIND_NAMES[kind], "all of this machine", many, many / max(seen.seconds, 1e-9), BY_MACHINE)
