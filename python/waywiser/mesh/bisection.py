"""Recursive coordinate bisection: cuts across the longest extent, again and again."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from waywiser.mesh.faces import Numbers


def bisected(centres: NDArray[np.float64], parts: int) -> Numbers:
    """The part of each cell, 0 to parts - 1, by the cells' centres.

    Parts differ by at most one cell. Cells with equal coordinates are cut in the order of their numbers, so the answer
    is the same everywhere. M. J. Berger and S. H. Bokhari, IEEE Transactions on Computers C-36 (1987), 570.
    """
    of_cell = np.zeros(len(centres), np.int64)
    _cut(centres, np.arange(len(centres)), 0, parts, of_cell)
    return of_cell


def _cut(centres: NDArray[np.float64], cells: Numbers, first: int, parts: int, of_cell: Numbers) -> None:
    if parts == 1 or len(cells) == 0:
        of_cell[cells] = first
        return
    here = centres[cells]
    extent = here.max(axis=0) - here.min(axis=0)
    order = np.argsort(here[:, int(np.argmax(extent))], kind="stable")
    lower = parts // 2
    # as many cells for each part, one more for the first ones
    each, more = divmod(len(cells), parts)
    at = lower * each + min(lower, more)
    _cut(centres, np.sort(cells[order[:at]]), first, lower, of_cell)
    _cut(centres, np.sort(cells[order[at:]]), first + lower, parts - lower, of_cell)
