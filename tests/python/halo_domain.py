"""A whole domain in NumPy, for programs of ranks: what a rank's array must hold."""

from __future__ import annotations

DOMAIN = """
import numpy as np, waywiser as ww

def whole(grid, seed, components=()):
    return np.random.default_rng(seed).integers(1, 200, (*grid.shape, *components))

def taken(values, grid):
    '''The cells of a rank's array, cut out of the whole domain; -1 beyond a border.'''
    widths = [(w, w) if w else (0, 0) for w in grid.ghost] + [(0, 0)] * (values.ndim - len(grid.shape))
    for axis, (width, periodic) in enumerate(zip(widths, grid.periodic)):
        pad = [width if i == axis else (0, 0) for i in range(values.ndim)]
        mode = {"mode": "wrap"} if periodic else {"mode": "constant", "constant_values": -1}
        values = np.pad(values, pad, **mode)
    return values[tuple(slice(f, f + c + 2 * w) for f, c, w in zip(grid.first, grid.count, grid.ghost))]

def owned_only(values, grid):
    field = np.full_like(values, -1)
    field[grid.interior] = values[grid.interior]
    return field
"""
