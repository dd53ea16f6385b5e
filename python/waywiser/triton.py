"""One-sided communication in kernels of Triton, by inline assembly.

    table = waywiser.triton.table(heap, team)

    @triton.jit
    def put_around(table, count: tl.constexpr):
        right = (rank(table) + 1) % size(table)
        places = tl.arange(0, count)
        put(table, 4096, places, tl.load(at(table, 64, tl.float32) + places), right)
        signal_add(table, 0, 1, right)
        wait_until(table, 0, 1)
        barrier(table)

    put_around[(1,)](table.data_ptr(), 1024)

`table` is an address; places are offsets in the heap, in bytes. One program of each rank makes a call, all its threads
together. What orders what is as in waywiser/one_sided.cuh: a put is seen by whoever has seen a later signal of the same
program, and what a wait has seen is there afterwards. Words are of 64 bits without a sign. docs/one-sided.md.
"""

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

from waywiser.group.types import Stream
from waywiser.heap import Heap, HeapTeam

__all__ = ["at", "at_rank", "barrier", "put", "rank", "signal_add", "signal_set", "size", "table", "wait_until"]

# Places in the table: as `words` of the core writes them.
RANK = tl.constexpr(0)
SIZE = tl.constexpr(1)
TEAM_RANK = tl.constexpr(5)
TEAM_SIZE = tl.constexpr(6)
OWN = tl.constexpr(7)
ARRIVALS = tl.constexpr(8)  # where the number of arrivals is in a team's counters, in bytes
MOST = tl.constexpr(9)  # the number of places in each list: the ranks' memory, the team's members, their counters
MEMORY = tl.constexpr(10)


def table(heap: Heap, team: HeapTeam, *, stream: Stream = None) -> Any:
    """What kernels need of a heap and a team of it, as a tensor of PyTorch on the present GPU. It must live until the
    kernels have ended, and be made again after `Heap.set_deadline`.

    Raises InputError for a heap in host memory, UnavailableError with `why_proxied`: stores must reach all ranks.
    """
    import torch

    words = heap._core.words(team._core, stream)
    for each in range(words[SIZE.value]):
        heap.address(each)
    return torch.tensor([word - (word >> 63 << 64) for word in words], dtype=torch.int64, device="cuda")


@triton.jit
def _word(table, place):  # type: ignore[no-untyped-def]
    return tl.load(table.to(tl.uint64).to(tl.pointer_type(tl.uint64)) + place)


@triton.jit
def rank(table):  # type: ignore[no-untyped-def]
    """The rank of this GPU."""
    return _word(table, RANK).to(tl.int32)


@triton.jit
def size(table):  # type: ignore[no-untyped-def]
    """The number of ranks."""
    return _word(table, SIZE).to(tl.int32)


@triton.jit  # type: ignore[untyped-decorator]
def at(table, offset, dtype: tl.constexpr):  # type: ignore[no-untyped-def]
    """A pointer to elements of this type in the memory of this rank, for tl.load and tl.store."""
    return (_word(table, OWN) + offset).to(tl.pointer_type(dtype))


@triton.jit  # type: ignore[untyped-decorator]
def at_rank(table, offset, dtype: tl.constexpr, to):  # type: ignore[no-untyped-def]
    """The same in the memory of another rank, which stores reach: `Heap.why_proxied` is empty."""
    return (_word(table, MEMORY + to) + offset).to(tl.pointer_type(dtype))


@triton.jit
def put(table, offset, places, values, to, mask=None):  # type: ignore[no-untyped-def]
    """Stores a block of values in the memory of rank `to`, at these places from the offset on, in elements."""
    tl.store(at_rank(table, offset, values.dtype, to) + places, values, mask=mask)


@triton.jit
def signal_set(table, offset, value, to):  # type: ignore[no-untyped-def]
    """Sets a word of rank `to`, after all that this program has put before."""
    tl.debug_barrier()
    _set((_word(table, MEMORY + to) + offset).to(tl.uint64), value)


@triton.jit
def signal_add(table, offset, value, to):  # type: ignore[no-untyped-def]
    """Adds to a word of rank `to`, after all that this program has put before."""
    tl.debug_barrier()
    tl.inline_asm_elementwise(
        """
        {
          .reg .pred first;
          .reg .u32 thread;
          mov.u32 thread, %tid.x;
          setp.eq.u32 first, thread, 0;
          @first red.release.sys.global.add.u64 [$1], $2;
          mov.u32 $0, 0;
        }
        """,
        "=r,l,l,~{memory}",
        [(_word(table, MEMORY + to) + offset).to(tl.uint64), tl.cast(value, tl.uint64)],
        dtype=tl.int32,
        is_pure=False,
        pack=1,
    )


@triton.jit
def wait_until(table, offset, value):  # type: ignore[no-untyped-def]
    """Waits until a word of this rank is at least `value`; at the deadline of the heap the kernel stops, and the heap's
    next check raises DeadlineError.
    """
    _wait(table, (_word(table, OWN) + offset).to(tl.uint64), tl.cast(offset, tl.uint64), tl.cast(value, tl.uint64), 0)
    tl.debug_barrier()


@triton.jit
def barrier(table):  # type: ignore[no-untyped-def]
    """Waits until all members of the team have come; what their programs have stored before is there afterwards."""
    most = _word(table, MOST).to(tl.int32)
    counters = MEMORY + 2 * most
    mine = _word(table, counters + _word(table, TEAM_RANK).to(tl.int32)).to(tl.uint64)
    own = _word(table, OWN).to(tl.uint64)
    arrivals = mine + _word(table, ARRIVALS)
    arrival = tl.load(arrivals.to(tl.pointer_type(tl.uint64)), volatile=True) + 1
    members = _word(table, TEAM_SIZE).to(tl.int32)
    tl.debug_barrier()
    tl.inline_asm_elementwise("fence.sc.sys; mov.u32 $0, 0;", "=r,r,~{memory}", [members], tl.int32, False, 1)
    tl.debug_barrier()
    for member in range(members):
        _set(_word(table, counters + member).to(tl.uint64) + 8 * _word(table, TEAM_RANK), arrival)
    for member in range(members):
        arrived = mine + 8 * member.to(tl.uint64)  # type: ignore[attr-defined]
        _wait(table, arrived, arrived - own, arrival, _word(table, MEMORY + most + member).to(tl.int32) + 1)
    tl.debug_barrier()
    tl.store(arrivals.to(tl.pointer_type(tl.uint64)), arrival)
    tl.debug_barrier()


@triton.jit
def _set(address, value):  # type: ignore[no-untyped-def]
    tl.inline_asm_elementwise(
        """
        {
          .reg .pred first;
          .reg .u32 thread;
          mov.u32 thread, %tid.x;
          setp.eq.u32 first, thread, 0;
          @first st.release.sys.global.u64 [$1], $2;
          mov.u32 $0, 0;
        }
        """,
        "=r,l,l,~{memory}",
        [address, tl.cast(value, tl.uint64)],
        dtype=tl.int32,
        is_pure=False,
        pack=1,
    )


# The first thread that is late writes the notice: what is wanted and seen, the comparison (>=), the offset, and at last
# the reason (1) above the rank plus 1 that should have come, 0 for none. The offsets are those of FaultNotice. A wait
# also ends (reason 6) when the host has said that the group has failed.
@triton.jit
def _wait(table, address, offset, value, rank_and_1):  # type: ignore[no-untyped-def]
    tl.inline_asm_elementwise(
        """
        {
          .reg .pred done, again;
          .reg .u64 seen, start, now, told, reason, notice, limit;
          .reg .u32 looks, some;
          mov.u64 start, 0;
          mov.u32 looks, 0;
        look:
          ld.acquire.sys.global.u64 seen, [$2];
          setp.ge.u64 done, seen, $4;
          @done bra over;
          add.u32 looks, looks, 1;
          and.b32 some, looks, 255;
          setp.ne.u32 again, some, 0;
          @again bra look;
          mov.u64 now, %globaltimer;
          setp.eq.u64 again, start, 0;
          @again mov.u64 start, now;
          ld.global.u64 notice, [$1+24];
          and.b32 some, looks, 16383;
          setp.ne.u32 again, some, 0;
          @again bra clock;
          ld.acquire.sys.u64 told, [notice+64];
          setp.eq.u64 again, told, 0;
          @again bra clock;
          ld.acquire.sys.u64 told, [notice];
          setp.ne.u64 again, told, 0;
          @again bra stop;
          mov.u64 reason, 25769803776;
          st.release.sys.u64 [notice], reason;
          bra stop;
        clock:
          sub.u64 now, now, start;
          ld.global.u64 limit, [$1+16];
          setp.lt.u64 again, now, limit;
          @again bra look;
          ld.acquire.sys.u64 told, [notice];
          setp.ne.u64 again, told, 0;
          @again bra stop;
          st.volatile.u64 [notice+8], $3;
          mov.u64 told, 8;
          st.volatile.u64 [notice+16], told;
          st.volatile.u64 [notice+24], $4;
          st.volatile.u64 [notice+32], seen;
          mov.u32 some, 3;
          st.volatile.u32 [notice+40], some;
          cvt.u64.u32 reason, $5;
          add.u64 reason, reason, 4294967296;
          st.release.sys.u64 [notice], reason;
        stop:
          ld.acquire.sys.u64 told, [notice];
          setp.eq.u64 again, told, 0;
          @again bra stop;
          trap;
        over:
          mov.u32 $0, 0;
        }
        """,
        "=r,l,l,l,l,r,~{memory}",
        [table.to(tl.uint64), address, offset, value, rank_and_1],
        dtype=tl.int32,
        is_pure=False,
        pack=1,
    )
