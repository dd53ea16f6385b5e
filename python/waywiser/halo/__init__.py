"""Halo exchanges: ghost cells get the values that other ranks own, again and again.

Three calls for structured grids: `init_grid`, `update_halo`, `finalize`. For everything else `waywiser.HaloExchange`.
"""

from waywiser.halo.current_grid import finalize, init_grid, update_halo
from waywiser.halo.exchange import HaloExchange, HaloSide, HaloVariant
from waywiser.halo.fields import ComponentsFirst, HaloField
from waywiser.halo.partition import GridPartition, MeshPartition

__all__ = [
    "ComponentsFirst",
    "GridPartition",
    "HaloExchange",
    "HaloField",
    "HaloSide",
    "HaloVariant",
    "MeshPartition",
    "finalize",
    "init_grid",
    "update_halo",
]
