"""A server of GPUs in words: its state, and the roads of arrays to it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from waywiser.offload.roads import DIRECTIONS, Roads, price_line
from waywiser.units import format_bytes, format_seconds


def lines_about(state: dict[str, Any]) -> Iterator[str]:
    """A server's state in words."""
    for gpu in state["gpus"]:
        yield f"{gpu['name']}: {gpu['clients']} clients, {format_bytes(gpu['memory'])} in use"
    yield f"at most {format_bytes(state['limit'])} for a client"
    if state.get("builtins_only"):  # an older server says nothing of it
        yield "only the built-in functions: it was started with --builtins-only"
    if state.get("data_plain"):
        yield "arrays of other machines: encrypted, or not if a client wants it (data_plain): started with --data-plain"
    else:
        yield "arrays of other machines: encrypted"
    for one in state["clients"]:
        about = f"{one['requests']} requests, {format_bytes(one['memory'])}, for {format_seconds(one['seconds'])}"
        yield f"client {one['client']}: GPU {one['gpu']}, {about}"


def lines_about_roads(name: str, roads: Roads | None) -> Iterator[str]:
    """The fastest roads by size, and what encryption costs, if they were measured."""
    if roads is None:
        yield f"{name}: no road was measured: waywiser tune --remote HOST:PORT"
        return
    for plain in (False, True):
        for direction in DIRECTIONS:
            rows = [(row.way, size) for row in roads.rows(direction, plain) for size, _ in row.expected]
            if rows:
                best = ", ".join(f"{road} at {format_bytes(size)}" for road, size in rows)
                yield f"{name}, {direction}{' unencrypted' if plain else ''}: {best}"
    for price in roads.prices():
        yield f"{name}, {price_line(price)}"
