"""The kernel of 12_languages.py in Triton, which wants it in a file of its own."""

import triton
import triton.language as tl

from waywiser.triton import at, barrier, put, rank, signal_add, size, wait_until


@triton.jit
def exchange(table, count: tl.constexpr, signal: tl.constexpr, given: tl.constexpr, taken: tl.constexpr):  # type: ignore[no-untyped-def]
    after = (rank(table) + 1) % size(table)
    places = tl.arange(0, count)
    values = 1000.0 * rank(table).to(tl.float32) + 0.5 * places.to(tl.float32)
    tl.store(at(table, given, tl.float32) + places, values)
    put(table, taken, places, values, after)
    signal_add(table, signal, 1, after)
    wait_until(table, signal, 1)
    barrier(table)
