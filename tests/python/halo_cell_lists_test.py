"""Lists of cells of a mesh partition: what is no list is refused with its reason, what is one is taken."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from rank_jobs import runtime_folder

import waywiser as ww

__all__ = ["runtime_folder"]


def partition(give: Any, take: Any) -> ww.MeshPartition:
    with ww.join() as group:
        return ww.MeshPartition(group, 4, [(0, give, take)])


@pytest.mark.parametrize(("cells", "dimensions"), [(np.zeros((2, 2), int), 2), (np.array(3), 0)])
def test_cells_that_are_no_list(cells: Any, dimensions: int) -> None:
    with pytest.raises(ww.InputTypeError, match=f"list of integers, not an array of {dimensions} dimensions"):
        partition(cells, [2])


@pytest.mark.parametrize("cells", [np.array([1], ">i8"), np.array([1], ">u2"), np.array([0, 1, 1])[1:2], [1], (1,)])
def test_cells_of_any_type_of_integers(cells: Any) -> None:
    assert partition(cells, np.array([2], ">u4")).neighbors == [0]
